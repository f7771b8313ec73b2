// [transforms] eval without tensors (engine/preprocess.h) against the pipeline on tensors: the same bits.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/infer/loaded_model.h"
#include "tests/support/random_tensor.h"

namespace sparsight::compiled_preprocessing_test {
namespace {

LoadedModel loaded_with(const std::string& steps, const ImageShape& shape) {
  LoadedModel loaded;
  loaded.shape = shape;
  loaded.eval_transforms = TransformPipeline(Json::parse(steps), "transforms.eval");
  return loaded;
}

at::Tensor bytes(int64_t channels, int64_t height, int64_t width) {
  return (at::sigmoid(test::random_tensor({channels, height, width}, 3, torch::kFloat)) * 255).to(torch::kByte);
}

TEST(CompiledPreprocessing, HasTheBitsOfThePipeline) {
  for (const std::string steps :
       {"[]", R"([{"op": "normalize", "mean": [0.4], "std": [0.3]}])", R"([{"op": "resize", "size": [12, 12]}])",
        R"([{"op": "resize", "size": [16]}, {"op": "center_crop", "size": 12},
            {"op": "normalize", "mean": [0.4, 0.5, 0.6], "std": [0.3, 0.2, 0.1]}])",
        R"([{"op": "resize", "size": [12], "filter": "bicubic"}])", R"([{"op": "center_crop", "size": 12}])"})
    for (const auto& [height, width] : {std::pair<int64_t, int64_t>{12, 12}, {31, 17}, {13, 40}, {9, 12}, {5, 6}}) {
      const LoadedModel loaded = loaded_with(steps, {3, 12, 12, 2});
      const at::Tensor image = bytes(3, height, width), expected = model_image(loaded, image);
      const auto compiled = loaded.eval_transforms.compile(3, 12, 12);
      ASSERT_TRUE(compiled) << steps;
      at::Tensor pixels = at::empty({3, 12, 12});
      compiled->run({image.const_data_ptr<uint8_t>(), 3, height, width, height * width, width},
                    pixels.data_ptr<float>());
      EXPECT_TRUE(at::equal(pixels, expected)) << steps << " " << height << "x" << width;
    }
}

TEST(CompiledPreprocessing, LacksStepsThatDrawRandomNumbers) {
  EXPECT_FALSE(loaded_with(R"([{"op": "flip"}])", {}).eval_transforms.compile(3, 12, 12));
  EXPECT_FALSE(loaded_with(R"([{"op": "normalize", "mean": [0.4], "std": [0.3]}, {"op": "flip"}])", {})
                   .eval_transforms.compile(3, 12, 12));
}

}  // namespace
}  // namespace sparsight::compiled_preprocessing_test
