#include "sparsight/engine/file/byte_source.h"

#include <cstring>

#include "sparsight/core/error.h"
#include "sparsight/core/input_file.h"

namespace sparsight::engine {
namespace {

class FileBytes final : public ByteSource {
 public:
  explicit FileBytes(const std::string& path)
      : path_(path), file_(open_for_reading(path)), bytes_(static_cast<int64_t>(size_of_file(file_, path))) {}
  int64_t bytes() const override { return bytes_; }
  void read(int64_t offset, void* to, int64_t count) const override {
    read_all_at(file_.get(), to, static_cast<size_t>(count), static_cast<size_t>(offset), path_);
  }
  const std::string& name() const override { return path_; }

 private:
  std::string path_;
  Descriptor file_;
  int64_t bytes_;
};

class MemoryBytes final : public ByteSource {
 public:
  MemoryBytes(ByteView bytes, const std::string& name) : bytes_(bytes), name_(name) {}
  int64_t bytes() const override { return static_cast<int64_t>(bytes_.size()); }
  void read(int64_t offset, void* to, int64_t count) const override {
    SPARSIGHT_CHECK(offset >= 0 && count >= 0 && offset <= bytes() - count);
    if (count > 0) std::memcpy(to, bytes_.data() + offset, static_cast<size_t>(count));
  }
  const std::string& name() const override { return name_; }

 private:
  ByteView bytes_;
  std::string name_;
};

}  // namespace

std::unique_ptr<ByteSource> open_file(const std::string& path) { return std::make_unique<FileBytes>(path); }

std::unique_ptr<ByteSource> bytes_in_memory(ByteView bytes, const std::string& name) {
  return std::make_unique<MemoryBytes>(bytes, name);
}

}  // namespace sparsight::engine
