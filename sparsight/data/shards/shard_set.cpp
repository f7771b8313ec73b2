#include "sparsight/data/shards/shard_set.h"

#include <charconv>

#include "sparsight/core/checksum.h"
#include "sparsight/core/error.h"
#include "sparsight/data/readers/image.h"

namespace sparsight {
namespace {

uint64_t checksum_value(const std::string& hex) {
  uint64_t value = 0;
  std::from_chars(hex.data(), hex.data() + hex.size(), value, 16);
  return value;
}

}  // namespace

ShardSet::ShardSet(DataInfo info, std::shared_ptr<const ShardStore> store)
    : info_(std::move(info)), store_(std::move(store)) {}

void ShardSet::add(size_t shard, const ShardIndex& index, const std::vector<int32_t>& labels) {
  SPARSIGHT_CHECK(labels.size() == index.images.size());
  const auto position = static_cast<int32_t>(shards_.size());
  shards_.push_back({shard, index.shard});
  for (size_t i = 0; i < labels.size(); ++i) {
    const ShardImage& image = index.images[i];
    SPARSIGHT_CHECK(labels[i] >= 0 && labels[i] < std::ssize(info_.classes));
    images_.push_back({image.offset, checksum_value(image.checksum), names_.size(), static_cast<uint32_t>(image.bytes),
                       labels[i], position, !image.checksum.empty()});
    names_ += image.name + '\0';
  }
}

bool ShardSet::is_right(const Image& image, const Bytes& bytes) const {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return !image.has_checksum || checksum_value(compute_checksum(text)) == image.checksum;
}

Sample ShardSet::get(int64_t index) const {
  const Image& image = images_.at(static_cast<size_t>(index));
  const auto& [shard, shard_name] = shards_[static_cast<size_t>(image.shard)];
  const std::string member = "/" + printable(names_.c_str() + image.name), name = store_->name(shard) + member;
  Bytes bytes(image.bytes);
  store_->read(shard, image.offset, bytes.data(), bytes.size());
  if (!is_right(image, bytes)) {
    // Damaged on its way, perhaps: once more.
    store_->read_anew(shard, image.offset, bytes.data(), bytes.size());
    if (!is_right(image, bytes))
      fail(name, " does not have the checksum that its index says; the shard is damaged or was replaced, get it again");
  }
  ImageDecoding decoding;
  decoding.channels = static_cast<int>(info_.channels);
  return {decode_image(bytes, name, decoding), image.label, 0, {}, shard_name + member, {}};
}

}  // namespace sparsight
