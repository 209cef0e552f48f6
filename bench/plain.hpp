// What the machine does without Cairn, and what people do without it: copies, writes and reads of the same bytes. Every function is
// collective, gives the seconds from the first begin to the last end, and leaves no file behind but those it is asked to keep.
#pragma once

#include <cstdint>
#include <string>

#include "image.hpp"
#include "team.hpp"

namespace bench {

struct PlainFiles {
    const Team& team;
    const WarmMemory& image;
    std::string directory;
    std::uint64_t chunk_bytes;  // of one write call

    // memcpy of every rank's image by its own process into memory that is warm.
    double copy(const WarmMemory& into) const;
    // As many bytes as all images have, by so many writers, each into a fresh file of its own, and fsync.
    double write(int writers) const;

    // Baselines. A file a rank; it stays there for read_back().
    double file_per_rank() const;
    // One file, every rank at its own offset, as VELOC does.
    double shared_file() const;
    // One file, MPI_File_write_at_all and MPI_File_sync.
    double collective() const;

    // Each rank reads what file_per_rank() wrote into warm memory.
    double read_back(const WarmMemory& into) const;
    void remove_kept() const;

  private:
    std::string own_file() const;
};

}  // namespace bench
