// What choosing efforts key by key (model/key_choice.hpp) makes of files: `cairn_codecs --keys`. Every number is of an encoding that was done, with the efforts that were chosen, on one thread.
#pragma once

#include "base/text_table.hpp"
#include "cli/codec_trials.hpp"
#include "model/key_choice.hpp"

namespace cairn::cli {

// With the codec's effort on all arrays but those of these keys.
CodecTrial try_efforts(const SampleImage& image, Codec codec, const KeyEfforts& efforts);

// Over storage of 5 MB/s to 5 GB/s, as one thread encodes beside it: raw bytes that become durable in a second without a codec, with fast, with small, and key by key.
void add_key_rows(TextTable& table, const std::string& name, const SampleImage& image);
TextTable key_table();

// What arrays that are alike take side by side and each by itself, and what they would if each key had the shorter of both.
void add_scheme_row(TextTable& table, const std::string& name, const SampleImage& image);
TextTable scheme_table();

}  // namespace cairn::cli
