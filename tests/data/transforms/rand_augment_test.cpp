#include "sparsight/data/transforms/rand_augment.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/data/transforms/pixel_ops.h"
#include "tests/data/transforms/golden_image.h"

namespace sparsight::rand_augment_test {
namespace {

TEST(RandAugment, EveryOperationButIdentityChangesThePicture) {
  const at::Tensor input = golden_image("dull.ppm"), before = input.clone();
  ASSERT_EQ(augmentations().size(), 14u);
  for (const std::string& name : augmentations()) {
    const at::Tensor result = augment(input, name, 1, false, 0);
    EXPECT_EQ(result.sizes(), input.sizes()) << name;
    EXPECT_EQ(at::equal(result, input), name == "identity") << name;
  }
  EXPECT_TRUE(at::equal(input, before));
}

TEST(RandAugment, StrengthsAreThoseOfThePaper) {
  const at::Tensor input = golden_image("input.ppm");  // 48 wide: the largest shift is trunc(48 * 150 / 331) = 21
  EXPECT_TRUE(at::equal(augment(input, "translate_x", 1, false, 0).narrow(2, 0, 27), input.narrow(2, 21, 27)));
  EXPECT_TRUE(at::equal(augment(input, "translate_x", 1, true, 0).narrow(2, 21, 27), input.narrow(2, 0, 27)));
  EXPECT_TRUE(at::equal(augment(input, "posterize", 1, false, 0), posterize(input, 4)));
  EXPECT_TRUE(at::equal(augment(input, "solarize", 1, true, 0), solarize(input, 0)));
  EXPECT_TRUE(at::equal(augment(input, "brightness", 0.5, true, 0), adjust_brightness(input, 0.55)));  // 1 - 0.9 / 2
  for (const char* name : {"shear_x", "shear_y", "translate_x", "translate_y", "rotate", "posterize"})
    EXPECT_TRUE(at::equal(augment(input, name, 0, false, 0), input)) << name;  // no strength
  EXPECT_THROW(augment(input, "blur", 1, false, 0), UsageError);
}

TEST(RandAugment, ShearAndRotationKeepTheMiddle) {
  const at::Tensor input = golden_image("input.ppm");
  for (const char* name : {"shear_x", "shear_y", "rotate"}) {
    const at::Tensor result = augment(input, name, 1, false, 0);
    EXPECT_TRUE(at::equal(result.narrow(1, 20, 1).narrow(2, 24, 1), input.narrow(1, 20, 1).narrow(2, 24, 1))) << name;
  }
}

TEST(RandAugment, IsAFunctionOfItsStream) {
  const at::Tensor input = golden_image("input.ppm");
  const TransformOp op = make_rand_augment({});
  ViewRandom a(RandomStream(5, "test")), b(RandomStream(5, "test"));
  EXPECT_TRUE(at::equal(op(input, a), op(input, b)));
  int different = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    ViewRandom random(RandomStream(seed, "test"));
    different += !at::equal(op(input, random), input);
  }
  EXPECT_GT(different, 12);  // both draws are the identity or without effect for a few
}

}  // namespace
}  // namespace sparsight::rand_augment_test
