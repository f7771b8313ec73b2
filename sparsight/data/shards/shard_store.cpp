#include "sparsight/data/shards/shard_store.h"

#include <atomic>
#include <list>
#include <mutex>

#include "sparsight/core/error.h"
#include "sparsight/core/input_file.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/log.h"
#include "sparsight/data/shards/block_cache.h"

namespace sparsight {
namespace {

constexpr size_t kOpenFiles = 64;

std::string joined(const std::string& root, const std::string& name) {
  return root + (root.ends_with('/') ? "" : "/") + name;
}

// The files used last stay open.
class LocalShards : public ShardStore {
 public:
  LocalShards(std::string root, std::vector<ShardFile> shards) : root_(std::move(root)), shards_(std::move(shards)) {}

  std::string name(size_t shard) const override { return printable(path(shard)); }

  int64_t size(size_t shard) const override { return static_cast<int64_t>(size_of_file(*file(shard), path(shard))); }

  void read(size_t shard, int64_t offset, void* data, size_t bytes) const override {
    read_all_at(file(shard)->get(), data, bytes, static_cast<size_t>(offset), path(shard));
  }

  void read_anew(size_t shard, int64_t offset, void* data, size_t bytes) const override {
    read(shard, offset, data, bytes);
  }

 private:
  struct OpenFile {
    size_t shard;
    std::shared_ptr<const Descriptor> file;
  };

  std::string path(size_t shard) const { return joined(root_, shards_.at(shard).name); }

  std::shared_ptr<const Descriptor> file(size_t shard) const {
    const std::lock_guard lock(mutex_);
    for (auto entry = open_.begin(); entry != open_.end(); ++entry)
      if (entry->shard == shard) {
        open_.splice(open_.begin(), open_, entry);
        return entry->file;
      }
    open_.push_front({shard, std::make_shared<const Descriptor>(open_for_reading(path(shard)))});
    if (open_.size() > kOpenFiles) open_.pop_back();
    return open_.front().file;
  }

  std::string root_;
  std::vector<ShardFile> shards_;
  mutable std::mutex mutex_;
  mutable std::list<OpenFile> open_;  // the one used last first
};

class RemoteShards : public ShardStore {
 public:
  RemoteShards(std::string root, std::vector<ShardFile> shards, const ReadAhead& ahead, const HttpReadOptions& options)
      : root_(std::move(root)),
        shards_(std::move(shards)),
        reader_(options),
        cache_(ahead.block, ahead.memory,
               [this](size_t shard, int64_t first, int64_t bytes) { return fetch(shard, first, bytes); }) {
    for (const ShardFile& shard : shards_) sizes_.push_back(shard.bytes);
  }

  std::string name(size_t shard) const override { return printable(url(shard)); }

  int64_t size(size_t shard) const override {
    {
      const std::lock_guard lock(mutex_);
      if (sizes_.at(shard) >= 0) return sizes_[shard];
    }
    const int64_t total = reader_.part(url(shard), 0, 1).total;
    const std::lock_guard lock(mutex_);
    return sizes_[shard] = total;
  }

  void read(size_t shard, int64_t offset, void* data, size_t bytes) const override {
    if (bytes == 0) return;
    if (!cache_.pays()) {
      if (!warned_.exchange(true))
        log_warning(root_,
                    ": images are read one by one, since most of each block was dropped from memory before it was "
                    "needed; raise data.cache_mb, or use loader.sampling = \"shards\" with a smaller "
                    "loader.shuffle_buffer");
      read_anew(shard, offset, data, bytes);
      return;
    }
    cache_.read(shard, size(shard), offset, data, bytes);
  }

  void read_anew(size_t shard, int64_t offset, void* data, size_t bytes) const override {
    if (bytes == 0) return;
    const Bytes part = fetch(shard, offset, static_cast<int64_t>(bytes));
    std::copy(part.begin(), part.end(), static_cast<uint8_t*>(data));
  }

 private:
  std::string url(size_t shard) const { return joined(root_, shards_.at(shard).name); }

  Bytes fetch(size_t shard, int64_t first, int64_t bytes) const {
    FilePart part = reader_.part(url(shard), first, bytes);
    if (part.total != size(shard) || std::ssize(part.bytes) != bytes)
      fail(name(shard), " has ", part.total, " bytes, but its index says ", size(shard),
           "; the shard was replaced, write its index again");
    return std::move(part.bytes);
  }

  std::string root_;
  std::vector<ShardFile> shards_;
  HttpReader reader_;
  mutable BlockCache cache_;
  mutable std::mutex mutex_;
  mutable std::vector<int64_t> sizes_;
  mutable std::atomic<bool> warned_ = false;
};

}  // namespace

void StoredShard::read(int64_t offset, void* to, int64_t count) const {
  if (interrupted()) fail("interrupted while reading ", name_);
  store_.read(shard_, offset, to, static_cast<size_t>(count));
}

bool is_url(const std::string& root) { return root.starts_with("http://") || root.starts_with("https://"); }

std::shared_ptr<const ShardStore> open_shards(const std::string& root, std::vector<ShardFile> shards,
                                              const ReadAhead& ahead, const HttpReadOptions& options) {
  if (is_url(root)) return std::make_shared<RemoteShards>(root, std::move(shards), ahead, options);
  return std::make_shared<LocalShards>(root, std::move(shards));
}

}  // namespace sparsight
