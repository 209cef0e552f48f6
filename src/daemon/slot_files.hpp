// Files of scratch: slots, how they are made, cleared and removed, and small ones beside them. All of it blocks: in workers only.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/bytes.hpp"
#include "base/status.hpp"

namespace cairn {

// Made if need be, and with space for so many bytes: a page that is missing when it is mapped would be a SIGBUS. Its pages lie on the given node of the machine's
// memory as far as that has room (tmpfs; -1: wherever the calling thread runs).
Status allocate_slot_file(const std::string& path, std::uint64_t bytes, int numa_node = -1);
// Its name goes, and its memory, whoever has it mapped; its size stays. For a slot that nobody stores into.
void remove_free_slot_file(const std::string& path);

// tmpfs clears a page when it is first touched, which takes longer than allocating it: touched here, nobody waits for it later. From `begin` to `end`
// until `stop`. Nothing where scratch is no tmpfs (there it would only write zeros to a disk), and where the kernel can not (before 5.14).
void clear_ahead(const std::string& path, std::uint64_t begin, std::uint64_t end, const std::atomic<bool>& stop);

// Whether its files are memory only, and gone when the machine starts again. False when that can not be told.
bool is_in_memory(const std::string& directory);

// What the file system has left for files in it.
Result<std::uint64_t> room_in(const std::string& directory);

// No error when it is not there.
Status remove_slot_file(const std::string& path);
// For many or large ones: the name goes at once, the memory in `later`, or with this process.
Status remove_slot_name(const std::string& path, const std::function<void(std::function<void()>)>& later);

// Whole or not at all, for whoever reads after this process was killed. Mode 0600: jobs/ holds secrets.
Status write_private_file(const std::string& path, const Bytes& bytes);
// What tries of that left when their daemon died. Only for who has the scratch to itself.
void remove_temporaries(const std::string& directory);
// Files that nobody has written to for so long: what ranks share when they restore has its names for no longer than it takes all of them to come (copies/shared_runs.hpp).
void remove_left(const std::string& directory, std::chrono::seconds age);

Status invalidate_slot_file(const std::string& path);

}  // namespace cairn
