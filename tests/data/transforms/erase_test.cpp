#include "sparsight/data/transforms/erase.h"

#include <cmath>

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "sparsight/core/error.h"

namespace sparsight::erase_test {
namespace {

at::Tensor erase(const RandomErasingOptions& options, const at::Tensor& image, uint64_t seed) {
  ViewRandom random(RandomStream(seed, "test"));
  return make_random_erasing(options)(image, random);
}

TEST(RandomErasing, ErasesOneBoxOfTheAskedArea) {
  RandomErasingOptions options;
  options.probability = 1;
  options.scale = {0.1, 0.2};
  options.value = 9;
  const at::Tensor image = at::full({1, 50, 50}, 100, at::kByte);
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const at::Tensor gone = erase(options, image, seed).eq(9)[0];
    const int64_t rows = gone.any(1).sum().item<int64_t>(), columns = gone.any(0).sum().item<int64_t>();
    const int64_t area = gone.sum().item<int64_t>();
    EXPECT_EQ(area, rows * columns);   // one box
    EXPECT_GE(area, 0.1 * 2500 - 50);  // sides are rounded: half a pixel on each of at most 50
    EXPECT_LE(area, 0.2 * 2500 + 50);
  }
}

TEST(RandomErasing, HappensWithItsProbability) {
  const at::Tensor image = at::full({1, 20, 20}, 100, at::kByte);
  int erased = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) erased += !at::equal(erase({}, image, seed), image);
  EXPECT_NEAR(erased, 500, 64);             // 4 sqrt(1000 / 4) = 63
  EXPECT_EQ(image.min().item<int>(), 100);  // the input is left alone
}

TEST(RandomErasing, FillsWithNoise) {
  RandomErasingOptions options;
  options.probability = 1;
  options.scale = {0.5, 0.6};
  options.ratio = {1, 1};
  options.noise = true;
  const at::Tensor bytes = erase(options, at::full({3, 40, 40}, 100, at::kByte), 1);
  const at::Tensor noise = bytes.masked_select(bytes.ne(100)).to(at::kFloat);
  EXPECT_NEAR(noise.mean().item<float>(), 127.5, 6);  // about 2600 uniform bytes: standard error 1.4
  const at::Tensor floats = erase(options, at::full({3, 40, 40}, 100, at::kFloat), 1);
  const at::Tensor normal = floats.masked_select(floats.ne(100));
  EXPECT_NEAR(normal.mean().item<float>(), 0, 0.1);
  EXPECT_NEAR(normal.std().item<float>(), 1, 0.1);
}

// The settings of the recipe `deit`: one box of 2 to 33.3 % with a height of 0.3 to 1/0.3 widths, a quarter of the
// time.
TEST(RandomErasing, M34_BoxesOfDeitStayInTheirRanges) {
  RandomErasingOptions options;
  options.probability = 0.25;
  options.scale = {0.02, 1.0 / 3};
  options.ratio = {0.3, 1 / 0.3};
  options.noise = true;
  constexpr int64_t kSide = 100;
  const at::Tensor image = at::full({1, kSide, kSide}, 100, at::kFloat);
  const int n = 4000;
  int erased = 0, tall = 0;
  double smallest = 1, largest = 0;
  for (uint64_t seed = 0; seed < n; ++seed) {
    const at::Tensor gone = erase(options, image, seed).ne(100)[0];
    const auto rows = gone.any(1).sum().item<double>(), columns = gone.any(0).sum().item<double>();
    if (rows == 0) continue;
    ++erased;
    tall += rows > columns;
    // Sides are rounded to whole pixels.
    EXPECT_GE((rows + 0.5) * (columns + 0.5), 0.02 * kSide * kSide);
    EXPECT_LE((rows - 0.5) * (columns - 0.5), kSide * kSide / 3.0);
    EXPECT_GE((rows + 0.5) / (columns - 0.5), 0.3);
    EXPECT_LE((rows - 0.5) / (columns + 0.5), 1 / 0.3);
    smallest = std::min(smallest, rows * columns / (kSide * kSide));
    largest = std::max(largest, rows * columns / (kSide * kSide));
  }
  EXPECT_NEAR(erased / static_cast<double>(n), 0.25, 4 * std::sqrt(0.25 * 0.75 / n));
  EXPECT_NEAR(tall / static_cast<double>(erased), 0.5, 4 * std::sqrt(0.25 / erased));  // log-uniform: as often as flat
  EXPECT_LT(smallest, 0.03);
  EXPECT_GT(largest, 0.32);
}

TEST(RandomErasing, LeavesImagesThatAreTooSmall) {
  RandomErasingOptions options;
  options.probability = 1;
  const at::Tensor dot = at::full({1, 1, 1}, 100, at::kByte);
  EXPECT_TRUE(at::equal(erase(options, dot, 0), dot));
  options.scale = {0.3, 0.2};
  EXPECT_THROW(make_random_erasing(options), UsageError);
}

}  // namespace
}  // namespace sparsight::erase_test
