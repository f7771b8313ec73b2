// The shards of a dataset, as files of a folder or on a web server.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sparsight/data/shards/http_reader.h"
#include "sparsight/engine/file/byte_source.h"

namespace sparsight {

struct ShardFile {
  std::string name;    // path below the folder or URL
  int64_t bytes = -1;  // or -1: not known yet
};

// How shards of a web server are read: in blocks of `block` bytes, of which the latest are kept.
struct ReadAhead {
  int64_t block = int64_t{4} << 20;
  int64_t memory = int64_t{2} << 30;  // for all blocks; one being read more
};

// Its functions may be called from several threads, and raise Error naming the shard.
class ShardStore {
 public:
  virtual ~ShardStore() = default;
  virtual std::string name(size_t shard) const = 0;  // path or URL, printable
  virtual int64_t size(size_t shard) const = 0;
  // 0 <= offset, offset + bytes <= size(shard).
  virtual void read(size_t shard, int64_t offset, void* data, size_t bytes) const = 0;
  // The same from where the shard is, not from memory.
  virtual void read_anew(size_t shard, int64_t offset, void* data, size_t bytes) const = 0;
};

bool is_url(const std::string& root);  // http:// or https://

// `root`: a folder or URL. Nothing is read yet.
std::shared_ptr<const ShardStore> open_shards(const std::string& root, std::vector<ShardFile> shards,
                                              const ReadAhead& ahead = {}, const HttpReadOptions& options = {});

// One of them, to be read from begin to end, which ends with Error when interrupted() (core/interrupt.h). The store
// must outlive it.
class StoredShard : public engine::ByteSource {
 public:
  StoredShard(const ShardStore& store, size_t shard) : store_(store), shard_(shard), name_(store.name(shard)) {}
  const std::string& name() const override { return name_; }
  int64_t bytes() const override { return store_.size(shard_); }
  void read(int64_t offset, void* to, int64_t count) const override;

 private:
  const ShardStore& store_;
  size_t shard_;
  std::string name_;
};

}  // namespace sparsight
