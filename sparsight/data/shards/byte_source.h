// The bytes of a shard, wherever it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace sparsight {

// read() may be called from several threads.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual const std::string& name() const = 0;  // printable, for errors
  virtual int64_t size() const = 0;
  // Raises Error naming the shard if they cannot be read. 0 <= offset, offset + bytes <= size().
  virtual void read(int64_t offset, void* data, size_t bytes) const = 0;
};

}  // namespace sparsight
