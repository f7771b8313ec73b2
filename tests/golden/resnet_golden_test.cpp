// ResNets against torchvision: tests/golden/make_resnet_golden.py made the file, and says what the weights are.
#include <map>

#include <gtest/gtest.h>

#include "sparsight/io/safetensors.h"
#include "sparsight/models/resnet.h"
#include "tests/golden/hashed_weights.h"
#include "tests/support/paths.h"
#include "tests/support/program_answers.h"

namespace sparsight::resnet_golden_test {
namespace {

struct Case {
  std::string name;
  int64_t depth;
  std::string stem = "imagenet";
};

}  // namespace

TEST(ResnetGolden, LogitsAgreeWithTorchvision) {
  const TensorFile file = read_safetensors(test::source_path("tests/golden/resnet_golden.safetensors"));
  const std::map<std::string, at::Tensor> golden(file.tensors.begin(), file.tensors.end());
  for (const Case& c : {Case{"18", 18}, Case{"34", 34}, Case{"50", 50}, Case{"18_cifar", 18, "cifar"}}) {
    const at::Tensor images = golden.at(c.name + "/images"), features = golden.at(c.name + "/features"),
                     logits = golden.at(c.name + "/logits");
    Resnet model({.depth = c.depth, .stem = c.stem}, {{3, images.size(2), images.size(3), 5}, default_moe_spec()});
    test::set_hashed_weights(model);
    const torch::NoGradGuard no_grad;
    const ModelOutput out = model.forward({images});
    EXPECT_LT(test::relative_difference(out.features, features), 1e-4) << c.name;
    EXPECT_LT(test::relative_difference(out.logits, logits), 1e-4) << c.name;
    EXPECT_GT(test::relative_difference(logits[0], logits[1]), 1e-2) << c.name;  // the images count
    EXPECT_LT(test::relative_difference(test::program_logits(model, images), logits), 1e-4) << c.name;
  }
}

}  // namespace sparsight::resnet_golden_test
