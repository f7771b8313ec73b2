// Reads, checks and writes the JSON header of a safetensors file.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sparsight {

struct TensorEntry {
  std::string name;
  at::ScalarType type;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // bytes, from the end of the header
  std::string checksum{};       // of the bytes (checksum.h); empty in files written by other programs
};

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;
  std::map<std::string, std::string> metadata;
};

// `data_bytes`: how many bytes follow the header. `path` names the file in errors. A header with a checksum of its own
// must match it.
SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t data_bytes, const std::string& path);

// The header as JSON, padded with spaces so that tensor bytes start at a multiple of 8. If all tensors have checksums,
// the metadata gets `xxh3-tensors`, theirs in the order of the header, and `xxh3-header`, that of this text with zeros
// in its own place. Either key without the other is an error to the reader, so no damaged key name goes unnoticed.
std::string safetensors_header_text(const SafetensorsHeader& header);

}  // namespace sparsight
