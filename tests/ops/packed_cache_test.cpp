// Packed copies of weights that are kept from pass to pass: used only for those weights, and until one changes.
#include "sparsight/ops/packed_cache.h"

#include <memory>

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "sparsight/ops/grouped_linear.h"

namespace sparsight::packed_cache_test {
namespace {

cpu::PackedKey make_key(const at::Tensor& weight, WeightType type = WeightType::fp32) {
  return {weight.const_data_ptr(), weight.size(0), weight.size(1), false, type};
}

// Packs nothing, and counts.
class Packing {
 public:
  // The number of the packing that gave the copy.
  int copy(PackedCache& cache, const cpu::PackedKey& key) {
    const cpu::PackedMatrix copy = cache.get(key, [&] {
      const auto number = std::make_shared<int>(++times_);
      return cpu::PackedMatrix(cpu::panel_order(key.type, 1), 0, 0, number.get(), nullptr, number);
    });
    return *static_cast<const int*>(copy.panels());
  }

 private:
  int times_ = 0;
};

TEST(PackedCache, KeepsCopiesOfItsWeightsUntilOneIsWrittenTo) {
  at::Tensor a = at::ones({4, 4}), b = at::ones({4, 4});
  PackedCache cache({a, b});
  Packing packing;
  const auto copy = [&](const cpu::PackedKey& key) { return packing.copy(cache, key); };
  EXPECT_EQ(copy(make_key(a)), 1);
  EXPECT_EQ(copy(make_key(b)), 2);
  EXPECT_EQ(copy(make_key(a)), 1);
  EXPECT_EQ(copy(make_key(a, WeightType::bf16)), 3);
  EXPECT_EQ(copy(make_key(a.narrow(0, 2, 2))), 4);
  EXPECT_EQ(copy(make_key(a.narrow(0, 2, 2))), 4);
  cache.refresh();
  EXPECT_EQ(copy(make_key(b)), 2);
  b.mul_(2);
  cache.refresh();
  EXPECT_EQ(copy(make_key(a)), 5);
  EXPECT_EQ(copy(make_key(b)), 6);
}

TEST(PackedCache, KeepsNothingOfOtherTensors) {
  PackedCache cache({at::ones({4, 4})});
  const at::Tensor other = at::ones({4, 4});
  Packing packing;
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(packing.copy(cache, make_key(other)), i);
}

TEST(PackedCache, IsInUseWithinItsScope) {
  PackedCache outer, inner;
  EXPECT_EQ(PackedCache::current(), nullptr);
  {
    const PackedCacheScope outer_scope(&outer);
    {
      const PackedCacheScope inner_scope(&inner);
      EXPECT_EQ(PackedCache::current(), &inner);
    }
    EXPECT_EQ(PackedCache::current(), &outer);
  }
  EXPECT_EQ(PackedCache::current(), nullptr);
}

// As many rows as are multiplied with a packed operand.
TEST(PackedCache, GivesTheBitsOfProductsWithoutIt) {
  const at::Tensor rows = at::randn({700, 48}), weight = at::randn({32, 48});
  const auto product = [&] { return grouped_linear_forward(rows, one_group(rows), weight.t().unsqueeze(0), {}); };
  const at::Tensor want = product();
  PackedCache cache({weight});
  const PackedCacheScope scope(&cache);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(at::equal(product(), want)) << i;
  weight.mul_(2);
  cache.refresh();
  EXPECT_TRUE(at::equal(product(), want * 2));
}

}  // namespace
}  // namespace sparsight::packed_cache_test
