// What torch.save writes since PyTorch 1.6, and TorchScript: a zip archive in which <root>/data.pkl is a pickle of the objects and <root>/data/<key> are the bytes of the
// storages that it names, as they are in memory. <root>/byteorder says their order; where it is absent it is little.
#pragma once

#include <vector>

#include "describe/extent.hpp"
#include "describe/zip.hpp"

namespace cairn {

// Tensors whose numbers lie side by side, and what is between them in their storage: that has the storage's type, and its key as its name. Nothing where the archive is none of
// PyTorch's. `entries`: of the file, none over another.
std::vector<Extent> describe_pytorch(ByteView file, const std::vector<ZipEntry>& entries);

}  // namespace cairn
