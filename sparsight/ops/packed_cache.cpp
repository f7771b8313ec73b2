#include "sparsight/ops/packed_cache.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "sparsight/ops/tensor_versions.h"

namespace sparsight {

PackedCache::PackedCache(std::vector<at::Tensor> weights)
    : weights_(std::move(weights)), version_(total_version(weights_)) {}

void PackedCache::refresh() {
  const int64_t version = total_version(weights_);
  if (version == version_) return;
  clear();
  version_ = version;
}

bool PackedCache::keeps(const void* data) const {
  const auto* const at = static_cast<const std::byte*>(data);
  return std::ranges::any_of(weights_, [&](const at::Tensor& weight) {
    const auto* const begin = static_cast<const std::byte*>(weight.const_data_ptr());
    return weight.is_cpu() && at >= begin && at < begin + weight.nbytes();
  });
}

}  // namespace sparsight
