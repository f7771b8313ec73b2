// A file that a process reads where the page cache has it, so that processes share its pages. A program that may write
// to the file can change and cut it under those that have it mapped: such a change is noticed (is_unchanged()), and
// memory of the process then replaces the file's pages.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sparsight/core/function_ref.h"
#include "sparsight/core/input_file.h"

namespace sparsight::engine {

// Whether the file is there and neither this user's, nor root's, nor that of the owner of the file `like`.
bool is_of_another_user(const std::string& path, const std::string& like);

class MappedFile {
 public:
#if defined(__linux__)
  static constexpr bool kSupported = true;
#else
  static constexpr bool kSupported = false;
#endif
  // Null for what is not a regular file, is empty, may be changed by others than may change the file `like`, or cannot
  // be mapped, as on other systems than Linux.
  static std::unique_ptr<MappedFile> open(const std::string& path, const std::string& like);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  int64_t bytes() const { return bytes_; }
  const char* data() const { return data_; }  // aligned to a page
  // Copies bytes that are there. Unlike memory, which ends the process, false where the file was cut.
  bool read(int64_t offset, void* to, int64_t count) const;
  // Has the pages of these bytes ready; false where the file was cut.
  bool load(int64_t offset, int64_t count) const;

  // Whether size and time are those of when it was opened.
  bool is_unchanged() const;
  // Replaces the file's pages by memory of this process, which fill() is given as zeros, in one moment and at the same
  // address. What fill() raises gets through, and then nothing has changed.
  void replace(FunctionRef<void(char* memory)> fill);

 private:
  MappedFile(Descriptor file, int64_t bytes, int64_t time) : file_(std::move(file)), bytes_(bytes), time_(time) {}

  Descriptor file_;
  int64_t bytes_, time_;  // nanoseconds
  char* data_ = nullptr;
};

}  // namespace sparsight::engine
