// Where the bytes of a frozen model come from. They are copied where they are needed, not mapped: a file that shrinks
// while it is in use is an error then, and not the end of the process.
#pragma once

#include <memory>
#include <string>

#include "sparsight/core/bytes.h"

namespace sparsight::engine {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual int64_t bytes() const = 0;
  // Copies `count` bytes from `offset` on, which are there. Raises Error where they cannot be read. From any thread.
  virtual void read(int64_t offset, void* to, int64_t count) const = 0;
  virtual const std::string& name() const = 0;  // in errors
};

// A regular file. Raises Error where it cannot be opened.
std::unique_ptr<ByteSource> open_file(const std::string& path);

// Bytes in memory, which must stay there. name: in errors.
std::unique_ptr<ByteSource> bytes_in_memory(ByteView bytes, const std::string& name);

}  // namespace sparsight::engine
