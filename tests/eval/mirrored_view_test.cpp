#include "sparsight/eval/mirrored_view.h"

#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include "sparsight/core/error.h"

namespace sparsight::mirrored_view_test {

// A model whose logits are the first two pixels of an image's first row.
ModelOutput first_pixels(const ModelInput& input) {
  ModelOutput out;
  out.logits = input.images.select(1, 0).select(1, 0).narrow(1, 0, 2);
  out.features = out.logits;
  return out;
}

// The rows 1 2 3 and 3 2 1 have the logits (1, 2) and (3, 2), in the mean (2, 2).
TEST(MirroredView, AveragesLogitsOfTheImageAndItsMirrorImage) {
  const at::Tensor images = at::tensor({1.0F, 2.0F, 3.0F, 0.0F, 4.0F, 8.0F}).view({2, 1, 1, 3});
  const ModelOutput out = with_mirrored_view(first_pixels)({.images = images});
  EXPECT_TRUE(at::equal(out.logits, at::tensor({2.0F, 2.0F, 4.0F, 4.0F}).view({2, 2})));
  EXPECT_TRUE(at::equal(out.features, at::tensor({1.0F, 2.0F, 0.0F, 4.0F}).view({2, 2})));
}

TEST(MirroredView, RefusesRoutingsOfTheImageItself) {
  const ModelInput input{.images = at::zeros({1, 1, 1, 3}), .routings = {{"blocks.0", Routing{}}}};
  EXPECT_THROW(with_mirrored_view(first_pixels)(input), UsageError);
}

}  // namespace sparsight::mirrored_view_test
