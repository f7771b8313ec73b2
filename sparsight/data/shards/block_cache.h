// Blocks of files that were read last, in bounded memory.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "sparsight/core/bytes.h"

namespace sparsight {

// read() may be called from several threads: each block is loaded by one of them, and the others wait.
class BlockCache {
 public:
  // The bytes of `file` from `first` on, of which there are `bytes`. Raises Error if it cannot.
  using Load = std::function<Bytes(size_t file, int64_t first, int64_t bytes)>;

  BlockCache(int64_t block, int64_t memory, Load load);

  // Copies `bytes` (at least one) at `offset` of a file of `file_bytes`. Blocks that follow one another and are missing
  // are loaded together.
  void read(size_t file, int64_t file_bytes, int64_t offset, void* data, size_t bytes);

  // Whether whole blocks are worth while: not where most of what was loaded was dropped again unused.
  bool pays() const;

 private:
  using Key = std::pair<size_t, int64_t>;
  struct Block {
    std::shared_ptr<const Bytes> bytes;  // null while it is being loaded
    uint64_t turn = 0;                   // of its last use
    int64_t used = 0;                    // bytes copied from it
  };

  // The block, loaded with those up to `last` if they are missing.
  std::shared_ptr<const Bytes> block(size_t file, int64_t file_bytes, int64_t number, int64_t last, int64_t used);
  // The first of them.
  std::shared_ptr<const Bytes> load_blocks(size_t file, int64_t file_bytes, int64_t first, int64_t count, int64_t used);
  void make_room();

  const int64_t block_, memory_;
  const Load load_;
  mutable std::mutex mutex_;
  std::condition_variable loaded_;
  std::map<Key, Block> blocks_;
  int64_t held_ = 0;  // bytes
  uint64_t turn_ = 0;
  int64_t dropped_ = 0, useful_ = 0;  // bytes of dropped blocks, and how many of them were copied
};

}  // namespace sparsight
