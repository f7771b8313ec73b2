#include "sparsight/ops/packed_cache.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "sparsight/ops/tensor_versions.h"

namespace sparsight {
namespace {

thread_local PackedCache* current_cache = nullptr;

}  // namespace

PackedCache::PackedCache(std::vector<at::Tensor> weights)
    : weights_(std::move(weights)), version_(total_version(weights_)) {}

void PackedCache::refresh() {
  const int64_t version = total_version(weights_);
  if (version == version_) return;
  const std::scoped_lock lock(mutex_);
  copies_.clear();
  version_ = version;
}

at::Tensor PackedCache::get(const PackedKey& key, const std::function<at::Tensor()>& pack) {
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = copies_.find(key); found != copies_.end()) return found->second;
  }
  const at::Tensor packed = pack();  // not under the lock: other threads pack other weights meanwhile
  if (!has(key.data)) return packed;
  const std::scoped_lock lock(mutex_);
  return copies_.emplace(key, packed).first->second;
}

bool PackedCache::has(const void* data) const {
  const auto* const at = static_cast<const std::byte*>(data);
  return std::ranges::any_of(weights_, [&](const at::Tensor& weight) {
    const auto* const begin = static_cast<const std::byte*>(weight.const_data_ptr());
    return weight.is_cpu() && at >= begin && at < begin + weight.nbytes();
  });
}

PackedCache* PackedCache::current() { return current_cache; }

PackedCacheScope::PackedCacheScope(PackedCache* cache) : before_(std::exchange(current_cache, cache)) {}

PackedCacheScope::~PackedCacheScope() { current_cache = before_; }

}  // namespace sparsight
