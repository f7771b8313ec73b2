// What every fuzz target asks of a reader: it succeeds, or it raises Error with one printable line. All else is a
// finding.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sparsight/core/error.h"
#include "sparsight/data/readers/bytes.h"

namespace sparsight {

template <class Read>
int try_reader(Read read) {
  try {
    read();
  } catch (const Error& error) {
    if (printable(error.what()) != error.what()) {
      std::fprintf(stderr, "not one printable line: %s\n", error.what());
      std::abort();
    }
  }
  return 0;
}

inline std::string_view as_text(const uint8_t* data, size_t size) {
  return std::string_view(reinterpret_cast<const char*>(data), size);
}

// A temporary file of its own for each process.
class TemporaryFile {
 public:
  TemporaryFile() {
    const int descriptor = mkstemp(path_);
    if (descriptor < 0) std::abort();
    close(descriptor);
  }
  ~TemporaryFile() { std::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string path() const { return path_; }

 private:
  char path_[32] = "/tmp/sparsight_fuzz_XXXXXX";
};

// The input as a file, for readers that take a path; always the same one.
inline std::string as_file(const uint8_t* data, size_t size) {
  static const TemporaryFile temporary;
  const std::string path = temporary.path();
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file || std::fwrite(data, 1, size, file) != size || std::fclose(file) != 0) std::abort();
  return path;
}

}  // namespace sparsight
