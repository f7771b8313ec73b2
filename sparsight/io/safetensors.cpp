#include "sparsight/io/safetensors.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "sparsight/core/checksum.h"
#include "sparsight/core/error.h"
#include "sparsight/core/limits.h"
#include "sparsight/core/options.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/safetensors_parts.h"
#include "sparsight/io/safetensors_reader.h"

namespace sparsight {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors stores little-endian numbers");

constexpr size_t kLengthBytes = 8;
constexpr size_t kReadBytes = size_t{1} << 18;  // per read, so that checksums find them in the cache

struct OpenedFile {
  Descriptor file;
  SafetensorsHeader header;
  size_t data_start;
};

OpenedFile open_safetensors(const std::string& path) {
  Descriptor file = open_for_reading(path);
  const uint64_t file_bytes = size_of_file(file, path);
  uint64_t length = 0;
  if (file_bytes < kLengthBytes) fail(path, " is not a safetensors file: it has only ", file_bytes, " bytes");
  read_all_at(file.get(), &length, kLengthBytes, 0, path);
  if (length > kMaxSafetensorsHeader)
    fail(path, " is not a safetensors file: it claims a header of ", length, " bytes, at most ", kMaxSafetensorsHeader,
         " are allowed");
  if (length > file_bytes - kLengthBytes)
    fail(path, ": the header of ", length, " bytes reaches beyond the file of ", file_bytes,
         " bytes; it is truncated or not a safetensors file");
  std::string json(length, '\0');
  read_all_at(file.get(), json.data(), length, kLengthBytes, path);
  const size_t start = kLengthBytes + length;
  SafetensorsHeader header = parse_safetensors_header(json, file_bytes - start, path);
  return {std::move(file), std::move(header), start};
}

// Wide types first, so that every tensor starts at a multiple of its item size although the format allows no gaps.
void lay_out(std::vector<TensorEntry>& tensors, const std::vector<size_t>& bytes, std::vector<size_t>& write_order) {
  write_order.resize(tensors.size());
  std::iota(write_order.begin(), write_order.end(), size_t{0});
  std::stable_sort(write_order.begin(), write_order.end(), [&](size_t a, size_t b) {
    return at::elementSize(tensors[a].type) > at::elementSize(tensors[b].type);
  });
  uint64_t position = 0;
  for (const size_t i : write_order) {
    tensors[i].begin = position;
    tensors[i].end = position += bytes[i];
  }
}

// data_start: where the file's tensors begin.
void read_tensor(const Descriptor& file, size_t data_start, const TensorEntry& entry, void* to,
                 const std::string& path) {
  Checksum checksum;
  auto* const data = static_cast<char*>(to);
  const size_t bytes = entry.end - entry.begin;
  for (size_t at = 0; at < bytes; at += kReadBytes) {
    const size_t count = std::min(kReadBytes, bytes - at);
    read_all_at(file.get(), data + at, count, data_start + entry.begin + at, path);
    if (!entry.checksum.empty()) checksum.update(data + at, count);
  }
  if (!entry.checksum.empty() && checksum.hex() != entry.checksum)
    fail(path, ": tensor ", printable(entry.name),
         " does not match its checksum; the file is damaged, use another copy");
}

at::Tensor as_written(const at::Tensor& tensor) {
  return tensor.detach().cpu().contiguous().resolve_conj().resolve_neg();
}

}  // namespace

TensorFile read_safetensors(const std::string& path, const std::function<bool(const std::string&)>& wanted) {
  return read_safetensors(path, wanted, nullptr);
}

TensorFile read_safetensors(const std::string& path, const std::function<bool(const std::string&)>& wanted,
                            const TensorCut& cut) {
  OpenedFile opened = open_safetensors(path);
  TensorFile result;
  result.metadata = std::move(opened.header.metadata);
  for (const TensorEntry& entry : opened.header.tensors) {
    if (wanted && !wanted(entry.name)) continue;
    at::Tensor tensor = at::empty(entry.shape, at::TensorOptions(entry.type));
    read_tensor(opened.file, opened.data_start, entry, tensor.data_ptr(), path);
    result.tensors.emplace_back(entry.name, cut ? cut(entry.name, tensor) : std::move(tensor));
  }
  return result;
}

SafetensorsReader::SafetensorsReader(const std::string& path) : path_(path) {
  OpenedFile opened = open_safetensors(path);
  header_ = std::move(opened.header);
  data_start_ = opened.data_start;
}

void SafetensorsReader::read(const TensorEntry& entry, void* to) const {
  read_tensor(open_for_reading(path_), data_start_, entry, to, path_);
}

at::Tensor SafetensorsReader::read(const TensorEntry& entry) const {
  at::Tensor tensor = at::empty(entry.shape, at::TensorOptions(entry.type));
  read(entry, tensor.data_ptr());
  return tensor;
}

SafetensorsHeader read_safetensors_header(const std::string& path) { return open_safetensors(path).header; }

std::map<std::string, std::string> read_safetensors_metadata(const std::string& path) {
  return open_safetensors(path).header.metadata;
}

void write_safetensors(const std::string& path, const TensorFile& file) {
  write_safetensors(path, file, [&](size_t i) { return file.tensors[i].second; });
}

void write_safetensors(const std::string& path, const TensorFile& file, const TensorSource& source, Existing existing) {
  SafetensorsHeader header;
  header.metadata = file.metadata;
  std::vector<size_t> bytes, write_order;
  std::set<std::string> names;
  for (const auto& [name, tensor] : file.tensors) {
    if (!tensor.defined()) fail("cannot write ", path, ": tensor ", name, " is undefined");
    if (name == "__metadata__" || !names.insert(name).second)
      fail("cannot write ", path, ": the tensor name \"", name, "\" is reserved or used twice");
    bytes.push_back(static_cast<size_t>(tensor.nbytes()));
    const at::Tensor plain = as_written(source(bytes.size() - 1));
    SPARSIGHT_CHECK(plain.sizes() == tensor.sizes() && plain.scalar_type() == tensor.scalar_type());
    header.tensors.push_back({name, tensor.scalar_type(), tensor.sizes().vec(), 0, 0,
                              compute_checksum({static_cast<const char*>(plain.const_data_ptr()), bytes.back()})});
  }
  lay_out(header.tensors, bytes, write_order);
  std::string text;
  try {
    text = safetensors_header_text(header);
  } catch (const Json::exception&) {
    fail("cannot write ", path, ": a tensor name or metadata text is not UTF-8");
  }
  const uint64_t length = text.size();
  if (length > kMaxSafetensorsHeader)
    fail("cannot write ", path, ": its header would have ", length, " bytes, at most ", kMaxSafetensorsHeader,
         " are allowed");
  AtomicFile out(path, existing);
  out.write(&length, sizeof length);
  out.write(text);
  for (const size_t i : write_order) {
    out.write(as_written(source(i)).const_data_ptr(), bytes[i]);
  }
  out.commit();
}

}  // namespace sparsight
