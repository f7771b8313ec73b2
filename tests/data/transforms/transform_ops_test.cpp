// Tests every registered transform by name.
#include "sparsight/data/transforms/transform_op.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/data/transforms/pipeline.h"
#include "tests/data/transforms/golden_image.h"

namespace sparsight::transform_ops_test {
namespace {

Json op_settings(const std::string& name) {
  if (name == "resize") return {{"size", {24, 24}}};
  if (name == "normalize") return {{"preset", "imagenet"}};
  if (name.find("crop") != std::string::npos) return {{"size", 24}};
  return Json::object();
}

at::Tensor with_op(const std::string& name, const at::Tensor& image, uint64_t seed) {
  Json step = op_settings(name);
  step["op"] = name;
  ViewRandom random(RandomStream(seed, "test"));
  return TransformPipeline(Json::array({step}), "transforms.train")(image, random);
}

TEST(EveryTransform, IsAFunctionOfImageAndStreamThatLeavesTheImageAlone) {
  const at::Tensor input = golden_image("input.ppm"), before = input.clone();
  for (const std::string& name : transform_ops().names()) {
    for (uint64_t seed = 0; seed < 8; ++seed) {
      const at::Tensor result = with_op(name, input, seed);
      EXPECT_EQ(result.scalar_type(), at::kFloat) << name;
      EXPECT_EQ(result.size(0), 3) << name;
      EXPECT_TRUE(result.is_contiguous()) << name;
      EXPECT_TRUE(at::equal(result, with_op(name, input, seed))) << name;
    }
  }
  EXPECT_TRUE(at::equal(input, before));
}

TEST(EveryTransform, DoesNotLookAtTheLayoutInMemory) {
  const at::Tensor input = golden_image("input.ppm");
  const at::Tensor interleaved = input.permute({1, 2, 0}).contiguous().permute({2, 0, 1});
  for (const std::string& name : transform_ops().names())
    EXPECT_TRUE(at::equal(with_op(name, input, 3), with_op(name, interleaved, 3))) << name;
}

TEST(Pipeline, ColourOperationsBelongBeforeNormalize) {
  const Json steps = Json::parse(R"([{"op": "normalize", "preset": "imagenet"}, {"op": "color_jitter"}])");
  ViewRandom random(RandomStream(0, "test"));
  try {
    TransformPipeline(steps, "transforms.train")(golden_image("input.ppm"), random);
    FAIL() << "expected an error";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("before normalize"), std::string::npos) << error.what();
  }
}

at::Tensor apply(const char* step, const at::Tensor& image, ViewRandom random) {
  return TransformPipeline(Json::array({Json::parse(step)}), "transforms.train")(image, random);
}

ViewRandom view_of(uint64_t image, int64_t epoch) {
  return {RandomStream(0, "view", static_cast<uint64_t>(epoch) * 1000 + image), RandomStream(0, "image", image), epoch};
}

// Every image is shown once as it is and once mirrored in two epochs; which comes first differs between images.
TEST(Flip, ShowsTheOtherViewInEveryOtherEpoch) {
  const at::Tensor image = at::arange(6, at::kByte).view({1, 2, 3});
  int first_mirrored = 0;
  for (uint64_t number = 0; number < 200; ++number) {
    std::vector<at::Tensor> shown;
    for (int64_t epoch = 0; epoch < 4; ++epoch)
      shown.push_back(apply(R"({"op": "flip", "alternate": true})", image, view_of(number, epoch)));
    EXPECT_TRUE(at::equal(shown[1], shown[0].flip(2)));
    EXPECT_TRUE(at::equal(shown[2], shown[0]));
    EXPECT_TRUE(at::equal(shown[3], shown[1]));
    first_mirrored += at::allclose(shown[0] * 255, image.to(at::kFloat)) ? 0 : 1;
  }
  EXPECT_GT(first_mirrored, 70);
  EXPECT_LT(first_mirrored, 130);
}

// The row 0 1 2 3 with two mirrored pixels on each side is 2 1 0 1 2 3 2 1, which has five windows of four.
TEST(RandomCrop, MirrorsTheImageAtItsEdges) {
  const at::Tensor image = at::arange(4, at::kByte).view({1, 1, 4}).expand({1, 4, 4}).contiguous();
  const std::vector<std::vector<int64_t>> windows{{2, 1, 0, 1}, {1, 0, 1, 2}, {0, 1, 2, 3}, {1, 2, 3, 2}, {2, 3, 2, 1}};
  std::vector<bool> seen(windows.size(), false);
  for (uint64_t number = 0; number < 100; ++number) {
    const at::Tensor crop = apply(R"({"op": "random_crop", "size": 4, "padding": 2, "padding_mode": "reflect"})", image,
                                  view_of(number, 0));
    ASSERT_EQ(crop.sizes(), at::IntArrayRef({1, 4, 4}));
    bool known = false;
    for (size_t w = 0; w < windows.size(); ++w)
      if (at::allclose(crop[0][0] * 255, at::tensor(windows[w]).to(at::kFloat))) known = seen[w] = true;
    EXPECT_TRUE(known) << crop;
    EXPECT_TRUE(at::equal(crop[0][0], crop[0][3]));
  }
  EXPECT_EQ(std::ranges::count(seen, true), 5);
}

// A padding as wide as the image would need pixels beyond its other edge.
TEST(RandomCrop, RefusesMorePaddingThanThereAreMirroredPixels) {
  const at::Tensor image = at::zeros({1, 4, 6}, at::kByte);
  EXPECT_THROW(
      apply(R"({"op": "random_crop", "size": 4, "padding": 4, "padding_mode": "reflect"})", image, view_of(0, 0)),
      UsageError);
  EXPECT_THROW(
      apply(R"({"op": "random_crop", "size": 9, "padding": 2, "padding_mode": "reflect"})", image, view_of(0, 0)),
      UsageError);
}

TEST(Resize, RefusesAMonstrousResult) {  // a row of 30000 pixels whose short side is to become 224
  ViewRandom random(RandomStream(0, "test"));
  const at::Tensor row = at::empty({1, 1, 30000}, at::kByte);
  const Json steps = Json::parse(R"([{"op": "resize", "size": [224]}])");
  EXPECT_THROW(TransformPipeline(steps, "transforms.train")(row, random), Error);
  // 1,000,000 rows, each of which is widened to 224 pixels first.
  const at::Tensor column = at::empty({1, 1000000, 1}, at::kByte);
  const Json square = Json::parse(R"([{"op": "resize", "size": [224, 224]}])");
  EXPECT_THROW(TransformPipeline(square, "transforms.train")(column, random), Error);
}

}  // namespace
}  // namespace sparsight::transform_ops_test
