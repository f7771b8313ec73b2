#include "sparsight/data/shards/block_cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "sparsight/core/error.h"

namespace sparsight {

BlockCache::BlockCache(int64_t block, int64_t memory, Load load)
    : block_(block), memory_(memory), load_(std::move(load)) {
  SPARSIGHT_CHECK(block > 0 && memory >= 0);
}

void BlockCache::read(size_t file, int64_t file_bytes, int64_t offset, void* data, size_t bytes) {
  SPARSIGHT_CHECK(bytes > 0 && offset >= 0 && offset + static_cast<int64_t>(bytes) <= file_bytes);
  auto* to = static_cast<uint8_t*>(data);
  const int64_t end = offset + static_cast<int64_t>(bytes), last = (end - 1) / block_;
  for (int64_t at = offset; at < end;) {
    const int64_t number = at / block_, begin = at - number * block_;
    const int64_t piece = std::min(end - at, block_ - begin);
    const std::shared_ptr<const Bytes> found = block(file, file_bytes, number, last, piece);
    std::memcpy(to, found->data() + begin, static_cast<size_t>(piece));
    to += piece, at += piece;
  }
}

bool BlockCache::pays() const {
  const std::lock_guard lock(mutex_);
  return dropped_ <= std::max(memory_, 8 * block_) || useful_ >= dropped_ / 4;
}

std::shared_ptr<const Bytes> BlockCache::block(size_t file, int64_t file_bytes, int64_t number, int64_t last,
                                               int64_t used) {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto found = blocks_.find({file, number});
    if (found != blocks_.end() && found->second.bytes) {
      found->second.turn = ++turn_;
      found->second.used += used;
      return found->second.bytes;
    }
    if (found != blocks_.end()) {
      loaded_.wait(lock);
      continue;
    }
    int64_t count = 0;
    while (number + count <= last && !blocks_.contains({file, number + count})) ++count;
    for (int64_t i = 0; i < count; ++i) blocks_[{file, number + i}].turn = ++turn_;
    lock.unlock();
    return load_blocks(file, file_bytes, number, count, used);
  }
}

std::shared_ptr<const Bytes> BlockCache::load_blocks(size_t file, int64_t file_bytes, int64_t first, int64_t count,
                                                     int64_t used) {
  const int64_t begin = first * block_, all = std::min(count * block_, file_bytes - begin);
  Bytes bytes;
  try {
    bytes = load_(file, begin, all);
    SPARSIGHT_CHECK(std::ssize(bytes) == all);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    for (int64_t i = 0; i < count; ++i) blocks_.erase({file, first + i});
    loaded_.notify_all();
    throw;
  }
  const std::lock_guard lock(mutex_);
  for (int64_t i = 0; i < count; ++i) {
    const auto from = bytes.begin() + i * block_;
    const auto to = bytes.begin() + std::min((i + 1) * block_, all);
    Block& block = blocks_.at({file, first + i});
    block.bytes = std::make_shared<const Bytes>(from, to);
    block.turn = ++turn_;
    held_ += to - from;
  }
  blocks_.at({file, first}).used += used;
  const std::shared_ptr<const Bytes> wanted = blocks_.at({file, first}).bytes;
  make_room();
  loaded_.notify_all();
  return wanted;
}

// Drops the blocks that were not used for longest, but never the latest one.
void BlockCache::make_room() {
  while (held_ > memory_) {
    auto oldest = blocks_.end();
    for (auto entry = blocks_.begin(); entry != blocks_.end(); ++entry)
      if (entry->second.bytes && entry->second.turn != turn_ &&
          (oldest == blocks_.end() || entry->second.turn < oldest->second.turn))
        oldest = entry;
    if (oldest == blocks_.end()) return;
    const int64_t bytes = std::ssize(*oldest->second.bytes);
    held_ -= bytes, dropped_ += bytes;
    useful_ += std::min(bytes, oldest->second.used);
    blocks_.erase(oldest);
  }
}

}  // namespace sparsight
