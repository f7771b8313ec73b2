// Files as input. Only regular files are opened: a device, a pipe or a socket could deliver without end or keep the
// program waiting for ever.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace sparsight {

// Raises Error: "cannot <action> <path>: <what the system said and what to do>".
[[noreturn]] void fail_system(const std::string& action, const std::string& path, int error_number);

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : value_(other.value_) { other.value_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  int get() const { return value_; }
  // The number, which its taker closes.
  int release();

 private:
  int value_;
};

// A regular file open for reading. Anything else raises Error at once; `action` begins its text ("read").
Descriptor open_for_reading(const std::string& path, const std::string& action = "read");

// How many bytes an open file has.
size_t size_of_file(const Descriptor& file, const std::string& path);

// Reads exactly `bytes` at `offset`, or raises Error naming `path`.
void read_all_at(int descriptor, void* data, size_t bytes, size_t offset, const std::string& path);

// The whole file. Raises Error where it cannot be read or holds more than `max_bytes`.
std::string read_file(const std::string& path, size_t max_bytes, const std::string& action = "read");

// The same for a text that another program may write for this one (`<(...)` of the shell, /dev/stdin): `path` may be a
// pipe too. Raises Error for one that nobody writes to, that ends empty, or that stays silent for `max_wait_seconds`.
std::string read_file_or_pipe(const std::string& path, size_t max_bytes, const std::string& action = "read",
                              double max_wait_seconds = 10);

}  // namespace sparsight
