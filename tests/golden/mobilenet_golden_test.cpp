// MobileNetV2 against torchvision: tests/golden/make_mobilenet_golden.py made the file.
#include <gtest/gtest.h>

#include "sparsight/io/safetensors.h"
#include "sparsight/models/mobilenet.h"
#include "tests/golden/hashed_weights.h"
#include "tests/support/paths.h"
#include "tests/support/program_answers.h"

namespace sparsight::mobilenet_golden_test {
namespace {

struct Case {
  std::string name;
  double width;
  std::string stem = "imagenet";
};

}  // namespace

TEST(MobilenetGolden, LogitsAgreeWithTorchvision) {
  const TensorFile file = read_safetensors(test::source_path("tests/golden/mobilenet_golden.safetensors"));
  const std::map<std::string, at::Tensor> golden(file.tensors.begin(), file.tensors.end());
  for (const Case& c : {Case{"1.0", 1}, Case{"0.75", 0.75}, Case{"0.5", 0.5}, Case{"0.5_cifar", 0.5, "cifar"}}) {
    const at::Tensor images = golden.at(c.name + "/images"), features = golden.at(c.name + "/features"),
                     logits = golden.at(c.name + "/logits");
    Mobilenet model({.width = c.width, .stem = c.stem}, {{3, images.size(2), images.size(3), 5}, default_moe_spec()});
    test::set_hashed_weights(model, 1.4);
    const torch::NoGradGuard no_grad;
    const ModelOutput out = model.forward({images});
    EXPECT_LT(test::relative_difference(out.features, features), 1e-4) << c.name;
    EXPECT_LT(test::relative_difference(out.logits, logits), 1e-4) << c.name;
    EXPECT_GT(test::relative_difference(logits[0], logits[1]), 1e-2) << c.name;  // the images count
    EXPECT_LT(test::relative_difference(test::program_logits(model, images), logits), 1e-4) << c.name;
  }
}

}  // namespace sparsight::mobilenet_golden_test
