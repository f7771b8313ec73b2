// Memory of a pass, on a model that holds a known number of bytes for each image.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <ATen/Parallel.h>

#include <iostream>

#include "sparsight/attacks/run/attack_batch_size.h"
#include "sparsight/ops/caching_allocator.h"
#include "tests/support/sanitizers.h"

namespace sparsight::attack_batch_size_test {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;

// 64 tensors of 64 KiB for each image, which live until the end of the pass: 4 MiB.
AttackedFunction heavy_model() {
  return AttackedFunction([](const at::Tensor& x) {
    std::vector<at::Tensor> held;
    for (int64_t i = 0; i < 64 * x.size(0); ++i) held.push_back(torch::ones({int64_t{1} << 14}));
    return x.flatten(1).narrow(1, 0, 3) + 0 * held.back()[0];
  });
}

AttackBatch blank_images(int64_t count) {
  return {torch::zeros({count, 1, 2, 2}), {torch::zeros({count}, torch::kLong)}, torch::arange(count, torch::kLong)};
}

// As in an attack, whose check of the model has left the memory of 32 images, unused.
void expect_known_size() {
  at::set_num_threads(1);
  use_caching_allocator();
  AttackedFunction model = heavy_model();
  const AttackBatch batch = blank_images(32);
  for (int i = 0; i < 2; ++i) model.forward(batch.pixels, {batch.image, 0});
  const int64_t bytes = pass_bytes_per_image(model, batch, /*gradients=*/true);
  std::cerr << "measured " << bytes << "\n";
  std::exit(bytes >= 4 * kMebibyte && bytes < 5 * kMebibyte ? 0 : 1);
}

}  // namespace

TEST(AttackBatchSize, MeasuresAPassAlthoughFreedMemoryIsKept) {
  if (test::kAddressSanitizer || test::kThreadSanitizer) GTEST_SKIP() << "the sanitizer keeps freed memory back";
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the allocator is for the whole process
  EXPECT_EXIT(expect_known_size(), ::testing::ExitedWithCode(0), "measured");
}

TEST(AttackBatchSize, IsAPowerOf2) {
  if (test::kThreadSanitizer) GTEST_SKIP() << "the sanitizer has memory of its own";
  AttackedFunction model = heavy_model();
  const BatchMemory one = find_batch_size(model, blank_images(1), false);
  EXPECT_GE(one.bytes_per_image, 3 * kMebibyte);
  EXPECT_GE(one.batch, 1);
  EXPECT_LE(one.batch, kLargestFoundBatch);
  EXPECT_EQ(one.batch & (one.batch - 1), 0);
}

}  // namespace sparsight::attack_batch_size_test
