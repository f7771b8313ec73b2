// Tests every registered transform by name.
#include "sparsight/data/transforms/transform_op.h"

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
  RandomStream random(seed, "test");
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
  RandomStream random(0, "test");
  try {
    TransformPipeline(steps, "transforms.train")(golden_image("input.ppm"), random);
    FAIL() << "expected an error";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("before normalize"), std::string::npos) << error.what();
  }
}

TEST(Resize, RefusesAMonstrousResult) {  // a row of 30000 pixels whose short side is to become 224
  RandomStream random(0, "test");
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
