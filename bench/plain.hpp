// What the machine does without Cairn, and what people do without it: copies, writes and reads of the same bytes. Every function is
// collective, gives the seconds from the first begin to the last end, and leaves no file behind but those it is asked to keep.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "image.hpp"
#include "team.hpp"

namespace bench {

// Who writes, and where to.
struct Writers {
    int count = 1;
    std::vector<int> ranks;             // the ranks that have writers, in turns; empty: all
    std::vector<std::string> suffixes;  // of the name a file is made with, in turns: how some file systems are told the storage target
    std::uint64_t bytes = 0;            // of all writers together; 0: as many as all images have
};

// Of MPI_Info: keys and values.
using Hints = std::vector<std::pair<std::string, std::string>>;

struct PlainFiles {
    const Team& team;
    const WarmMemory& image;
    std::string directory;
    std::uint64_t chunk_bytes;  // of one write call
    std::string tag = "";       // ends each file's name: file systems that choose a target from the name choose anew with another tag

    // memcpy of every rank's image by its own process into memory that is warm.
    double copy(const WarmMemory& into) const;
    // The same into memory that nobody has used: a mapping of the kind that scratch is of (tmpfs) is made, populated and filled.
    double fresh_copy() const;
    // By so many writers, each as many bytes as the others, each into a fresh file of its own, and fsync.
    double write(const Writers& writers) const;

    // Baselines. A file a rank; it stays there for read_back(). With suffixes, as in Writers, rank by rank in turns: on storage targets that are chosen.
    double file_per_rank(const std::vector<std::string>& suffixes = {}) const;
    // The same without the others: this rank's, from other memory; not collective.
    void write_own_file(const WarmMemory& from) const;
    // One file, every rank at its own offset, as VELOC does.
    double shared_file() const;
    // So many files, each by its group of ranks: MPI_File_write_at_all and MPI_File_sync. What an MPI does not know of the hints it passes over.
    double collective(int files = 1, const Hints& hints = {}) const;

    // Each rank reads what file_per_rank() wrote into warm memory.
    double read_back(const WarmMemory& into) const;
    void remove_kept() const;

  private:
    std::string own_file() const;
};

}  // namespace bench
