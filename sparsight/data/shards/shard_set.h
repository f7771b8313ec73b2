// A dataset of images in shards, decoded on demand.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sparsight/data/data_set.h"
#include "sparsight/data/shards/index_shard.h"
#include "sparsight/data/shards/shard_store.h"

namespace sparsight {

// Images are numbered shard by shard, in the order of their members.
class ShardSet : public DataSet {
 public:
  ShardSet(DataInfo info, std::shared_ptr<const ShardStore> store);

  // The next shard of the set, which is the one with this number in the store. labels: [images], below the classes.
  void add(size_t shard, const ShardIndex& index, const std::vector<int32_t>& labels);

  const DataInfo& info() const override { return info_; }
  int64_t size() const override { return std::ssize(images_); }
  Sample get(int64_t index) const override;
  int64_t label(int64_t index) const override { return images_.at(static_cast<size_t>(index)).label; }
  int64_t shard(int64_t index) const override { return images_.at(static_cast<size_t>(index)).shard; }

 private:
  // There may be a hundred million of them.
  struct Image {
    int64_t offset = 0;
    uint64_t checksum = 0;
    uint64_t name = 0;  // where it begins in names_; it ends at a NUL
    uint32_t bytes = 0;
    int32_t label = 0, shard = 0;  // position in shards_
    bool has_checksum = false;
  };

  struct Shard {
    size_t number = 0;  // in the store
    std::string name;
  };

  bool is_right(const Image& image, const Bytes& bytes) const;

  DataInfo info_;
  std::shared_ptr<const ShardStore> store_;
  std::vector<Shard> shards_;
  std::vector<Image> images_;
  std::string names_;
};

}  // namespace sparsight
