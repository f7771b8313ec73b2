#include "sparsight/io/safetensors_rows.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <vector>

#include <ATen/ops/empty.h>
#include <c10/util/accumulate.h>

#include "sparsight/core/checksum.h"
#include "sparsight/core/error.h"
#include "sparsight/io/safetensors.h"

namespace sparsight {
namespace {

// An unnamed temporary file in the folder of `path`. Where a file system has none, it has a name for a moment: that of
// a temporary file, which a later AtomicFile of `path` removes if this process is killed before it does.
Descriptor nameless_file(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const int nameless = open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (nameless >= 0) return Descriptor(nameless);
  const std::string name = temporary_name(path);
  const int descriptor = open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) fail_system("write", path, errno);
  unlink(name.c_str());
  return Descriptor(descriptor);
}

}  // namespace

struct SafetensorsRowWriter::Column {
  Descriptor file;
  at::ScalarType type;
  std::vector<int64_t> shape;  // shape[0] grows
  size_t bytes = 0;
  Checksum checksum{};
};

SafetensorsRowWriter::SafetensorsRowWriter(const std::string& path) : path_(path) {}
SafetensorsRowWriter::~SafetensorsRowWriter() = default;

void SafetensorsRowWriter::append(const std::string& name, const at::Tensor& rows) {
  SPARSIGHT_CHECK(rows.dim() > 0);
  std::unique_ptr<Column>& column = columns_[name];
  if (!column) {
    column.reset(new Column{nameless_file(path_), rows.scalar_type(), rows.sizes().vec()});
    column->shape[0] = 0;
  }
  SPARSIGHT_CHECK(rows.scalar_type() == column->type && rows.dim() == std::ssize(column->shape) &&
                  rows.sizes().slice(1) == at::IntArrayRef(column->shape).slice(1));
  const at::Tensor plain = rows.detach().cpu().contiguous();
  write_all(column->file.get(), plain.const_data_ptr(), plain.nbytes(), path_);
  column->checksum.update(plain.const_data_ptr(), plain.nbytes());
  column->bytes += plain.nbytes();
  column->shape[0] += rows.size(0);
}

void SafetensorsRowWriter::reshape(const std::string& name, const std::vector<int64_t>& shape) {
  Column& column = *columns_.at(name);
  SPARSIGHT_CHECK(c10::multiply_integers(shape) == c10::multiply_integers(column.shape));
  column.shape = shape;
}

int64_t SafetensorsRowWriter::bytes() const {
  size_t sum = 0;
  for (const auto& [name, column] : columns_) sum += column->bytes;
  return static_cast<int64_t>(sum);
}

void SafetensorsRowWriter::commit(const std::map<std::string, std::string>& metadata) const {
  AtomicFile out(path_);
  write(out, metadata);
  out.commit();
}

void SafetensorsRowWriter::write(AtomicFile& out, const std::map<std::string, std::string>& metadata) const {
  std::vector<std::pair<std::string, const Column*>> order;
  for (const auto& [name, column] : columns_) order.emplace_back(name, column.get());
  // Wide types first, so that every tensor starts at a multiple of its item size.
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return at::elementSize(a.second->type) > at::elementSize(b.second->type);
  });
  SafetensorsHeader header{{}, metadata};
  uint64_t position = 0;
  for (const auto& [name, column] : order) {
    header.tensors.push_back(
        {name, column->type, column->shape, position, position + column->bytes, column->checksum.hex()});
    position += column->bytes;
  }
  const std::string text = safetensors_header_text(header);
  const uint64_t length = text.size();
  out.write(&length, sizeof length);
  out.write(text);
  std::vector<char> chunk(size_t{1} << 20);
  for (const auto& [name, column] : order)
    for (size_t at = 0; at < column->bytes; at += chunk.size()) {
      const size_t count = std::min(chunk.size(), column->bytes - at);
      read_all_at(column->file.get(), chunk.data(), count, at, path_);
      out.write(chunk.data(), count);
    }
}

SafetensorsRowReader::SafetensorsRowReader(const std::string& path)
    : path_(path), header_(read_safetensors_header(path)), file_(open_for_reading(path)) {
  uint64_t length = 0;
  read_all_at(file_.get(), &length, sizeof length, 0, path_);
  data_start_ = sizeof length + length;
}

at::Tensor SafetensorsRowReader::rows(const std::string& name, int64_t first, int64_t last) const {
  const auto entry = std::ranges::find(header_.tensors, name, &TensorEntry::name);
  if (entry == header_.tensors.end() || entry->shape.empty() || first < 0 || last < first || last > entry->shape[0])
    fail(path_, " has no rows ", first, " to ", last, " of a tensor ", name, "; it is damaged, use another copy");
  std::vector<int64_t> shape = entry->shape;
  shape[0] = last - first;
  at::Tensor rows = at::empty(shape, at::TensorOptions(entry->type));
  const size_t row_bytes =
      entry->shape[0] > 0 ? (entry->end - entry->begin) / static_cast<size_t>(entry->shape[0]) : size_t{0};
  read_all_at(file_.get(), rows.data_ptr(), rows.nbytes(),
              data_start_ + entry->begin + static_cast<size_t>(first) * row_bytes, path_);
  return rows;
}

}  // namespace sparsight
