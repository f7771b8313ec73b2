// Reads and writes safetensors, the plain file format of named tensors
// (https://huggingface.co/docs/safetensors: 8 bytes header length, JSON header, tensor bytes).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sparsight/io/safetensors_header.h"

namespace sparsight {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

struct TensorFile {
  NamedTensors tensors;                         // in the order of the file's header
  std::map<std::string, std::string> metadata;  // any strings
};

// Reads the whole file onto the CPU. A file that violates the format (header beyond the file or over 100 MB, unknown
// type, offsets that overlap, leave gaps or do not fit the shape, duplicate names) raises Error before memory for its
// tensors is allocated; so does a header or tensor that does not match its checksum, if the file has checksums.
// `wanted` selects tensors by name; the whole header is checked anyway.
TensorFile read_safetensors(const std::string& path, const std::function<bool(const std::string&)>& wanted = nullptr);

// Types and shapes of the tensors and the metadata, checked as above, without reading tensors.
SafetensorsHeader read_safetensors_header(const std::string& path);
// Only the metadata, without reading tensors.
std::map<std::string, std::string> read_safetensors_metadata(const std::string& path);

// Adds checksums of every tensor and of the header. Writes a temporary file and renames it. At most one tensor at a
// time is copied (one on a device or not contiguous).
void write_safetensors(const std::string& path, const TensorFile& file);

}  // namespace sparsight
