// ResNets against torchvision: tests/golden/make_resnet_golden.py made the file, and says what the weights are.
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "sparsight/io/safetensors.h"
#include "sparsight/models/resnet.h"
#include "tests/support/paths.h"

namespace sparsight::resnet_golden_test {
namespace {

// uniform() of the script.
at::Tensor hashed_uniform(int64_t number, at::IntArrayRef sizes) {
  const int64_t mask = 0xFFFFFFFF;
  at::Tensor h = at::arange(c10::multiply_integers(sizes), torch::kLong) * int64_t{2654435761} + (number + 1) * 974711;
  h = h.bitwise_and(mask);
  for (int i = 0; i < 2; ++i) h = (h.bitwise_xor(h.bitwise_right_shift(16)) * 73244475).bitwise_and(mask);
  h = h.bitwise_xor(h.bitwise_right_shift(16));
  return (h.to(torch::kDouble) / 4294967296. - 0.5).reshape(sizes);
}

// weights_of() of the script. The numbers are those of the sorted names, so all names must be torchvision's.
void set_weights(Resnet& model) {
  const torch::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> sorted;
  for (const auto& p : model.named_parameters()) sorted[p.key()] = p.value();
  for (const auto& b : model.named_buffers())
    if (!b.key().ends_with("num_batches_tracked")) sorted[b.key()] = b.value();
  int64_t number = 0;
  for (auto& [name, tensor] : sorted) {
    const at::Tensor u = hashed_uniform(number++, tensor.sizes());
    if (u.dim() > 1)
      tensor.copy_(u * std::sqrt(12 / static_cast<double>(u[0].numel())));
    else if (name.ends_with("running_var"))
      tensor.copy_(1 + u);
    else
      tensor.copy_(0.6 * u + (name.ends_with("weight") ? 1 : 0));
  }
}

struct Case {
  std::string name;
  int64_t depth;
  std::string stem = "imagenet";
};

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).abs().max() / b.abs().max()).item<double>();
}

}  // namespace

TEST(ResnetGolden, LogitsAgreeWithTorchvision) {
  const TensorFile file = read_safetensors(test::source_path("tests/golden/resnet_golden.safetensors"));
  const std::map<std::string, at::Tensor> golden(file.tensors.begin(), file.tensors.end());
  for (const Case& c : {Case{"18", 18}, Case{"34", 34}, Case{"50", 50}, Case{"18_cifar", 18, "cifar"}}) {
    const at::Tensor images = golden.at(c.name + "/images"), features = golden.at(c.name + "/features"),
                     logits = golden.at(c.name + "/logits");
    Resnet model({.depth = c.depth, .stem = c.stem}, {{3, images.size(2), images.size(3), 5}, default_moe_spec()});
    set_weights(model);
    const torch::NoGradGuard no_grad;
    const ModelOutput out = model.forward({images});
    EXPECT_LT(relative_difference(out.features, features), 1e-4) << c.name;
    EXPECT_LT(relative_difference(out.logits, logits), 1e-4) << c.name;
    EXPECT_GT(relative_difference(logits[0], logits[1]), 1e-2) << c.name;  // the images count
    model.freeze(WeightType::fp32);
    EXPECT_LT(relative_difference(model.forward({images}).logits, logits), 1e-4) << c.name;
  }
}

}  // namespace sparsight::resnet_golden_test
