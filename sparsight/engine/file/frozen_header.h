// The header of a frozen model: what is in the file and where. Layout: docs/file_formats.md, "Frozen models".
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sparsight/core/function_ref.h"
#include "sparsight/core/options.h"
#include "sparsight/engine/file/byte_source.h"
#include "sparsight/kernels/types.h"

namespace sparsight::engine {

constexpr int64_t kFrozenVersion = 1;
constexpr int64_t kTensorAlignment = 64, kColumnAlignment = 4096;

struct FrozenTensor {
  std::string name;  // "steps.3.fc1.weight"
  WeightType type = WeightType::fp32;
  std::vector<int64_t> shape;
  int64_t column = -1;  // the expert that it belongs to; -1: none
  int64_t offset = 0;   // from the start of the file
  std::string checksum = {};

  int64_t numbers() const;
  int64_t bytes() const;
};

// Bytes offset .. offset + bytes of the file.
struct FileRange {
  int64_t offset = 0, bytes = 0;
};

struct FrozenHeader {
  Json program;                       // the steps, and what it takes to use them
  Json provenance;                    // who made the file of what
  std::vector<FrozenTensor> tensors;  // in the order of the file: those of no expert first, then expert by expert
  int64_t file_bytes = 0;
  std::string checksum = {};  // of its text, and so of all that it tells of the file

  // The tensors of expert e, one after the other; empty ranges where it has none.
  std::vector<FileRange> columns() const;
};

// A tensor to be written; its offset and checksum are set then.
struct NewTensor {
  FrozenTensor entry;
  Bytes bytes;
};

// Passes the bytes of a file to write(), from the first to the last.
void write_frozen(const Json& program, const Json& provenance, std::vector<NewTensor> tensors,
                  FunctionRef<void(const void*, size_t)> write);

// Whether the file begins as a frozen model.
bool begins_as_frozen(const ByteSource& file);

// The first multiple of the alignment from an offset on.
int64_t aligned(int64_t offset, int64_t alignment);

// Whether the bytes have this checksum. Fuzzers get behind it, as it would stop all that they change.
bool has_checksum(std::string_view bytes, std::string_view checksum);

// Raises Error for what is no frozen model, is damaged or cut, is of another version, or lists tensors that the file
// cannot hold as it says.
FrozenHeader read_header(const ByteSource& file);

// A tensor's bytes. Raises Error where they do not have its checksum.
Bytes read_tensor(const ByteSource& file, const FrozenTensor& tensor);
// The numbers of one in fp32.
std::vector<float> read_floats(const ByteSource& file, const FrozenTensor& tensor);

}  // namespace sparsight::engine
