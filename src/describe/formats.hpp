// The formats that describe_file() knows, one function each; file.cpp has the table. Each is given bytes that begin as its format does, and may return extents that are not
// sound: file.cpp sorts them and leaves out what lies outside the file or over another.
#pragma once

#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "describe/extent.hpp"

namespace cairn {

Result<std::vector<Extent>> describe_npy(ByteView file);          // NumPy, NEP 1: versions 1 to 3
Result<std::vector<Extent>> describe_safetensors(ByteView file);  // huggingface/safetensors, README "Format"
Result<std::vector<Extent>> describe_netcdf(ByteView file);       // netCDF classic: CDF-1, CDF-2, CDF-5 (NetCDF User Guide, "File Format Specifications")
Result<std::vector<Extent>> describe_zip(ByteView file);          // stored entries: .npz of NumPy, and what torch.save writes

bool is_npy(ByteView file);
bool is_safetensors(ByteView file);
bool is_netcdf(ByteView file);
bool is_zip(ByteView file);

}  // namespace cairn
