// Second derivatives of a vision transformer with experts: while a TwiceDifferentiable lives.
#include "sparsight/ops/twice_differentiable.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "sparsight/core/config.h"
#include "sparsight/io/weights.h"
#include "sparsight/models/make_model.h"
#include "sparsight/nn/init.h"
#include "sparsight/train/run_config.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

#include <nlohmann/json.hpp>

namespace sparsight::twice_differentiable_test {
namespace {

using test::near;

// Two blocks, the second with experts. settings: further ones.
std::shared_ptr<ImageModel> tiny_vit_moe(const std::vector<std::string>& settings) {
  Config config;
  for (const char* setting : {"model.name=vit", "model.size=custom", "model.width=4", "model.depth=2", "model.heads=2",
                              "model.patch=4", "moe.blocks=[-1]", "moe.experts=2", "router.k=1"})
    config.set(setting);
  for (const std::string& setting : settings) config.set(setting);
  const auto model = make_model(resolve(config, config_sections()), {1, 8, 8, 2}, PixelStatistics{});
  initialize(*model, 1);
  const at::NoGradGuard no_grad;  // larger than at the start, so that second derivatives are not almost 0
  for (at::Tensor& parameter : model->parameters())
    if (parameter.dim() > 1) parameter.mul_(20);
  return model;
}

at::Tensor compute_logits(ImageModel& model, const at::Tensor& images) {
  return model.forward({.images = images, .mode = {.dropout = true}}).logits;
}

// |d(sum of squares of logits) / d images|²
at::Tensor input_gradient_norm(ImageModel& model, const at::Tensor& images) {
  const at::AutoGradMode with_grad(true);
  const TwiceDifferentiable twice;
  const at::Tensor loss = compute_logits(model, images).square().sum();
  return torch::autograd::grad({loss}, {images}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0].square().sum();
}

at::Tensor images_for(at::ScalarType type) {
  return test::random_tensor({2, 1, 8, 8}, 3, type).abs().requires_grad_(true);
}

}  // namespace

// Experts with and without dropout and recomputation, which run other code.
TEST(TwiceDifferentiable, SecondDerivativesEqualNumericOnes) {
  for (const std::vector<std::string>& settings :
       {std::vector<std::string>{}, {"experts.dropout=0.1"}, {"experts.recompute=true", "model.recompute=true"}}) {
    const auto model = tiny_vit_moe(settings);
    model->to(at::kDouble);
    const at::Tensor images = images_for(at::kDouble);
    std::vector<at::Tensor> inputs;
    for (const auto& [name, tensor] : named_weights(*model))
      for (const char* part : {"blocks.0.attn.qkv.weight", "blocks.0.norm2.weight", "blocks.1.mlp.experts.b1",
                               "blocks.1.mlp.experts.b2", "head.weight"})
        if (name == part) inputs.push_back(tensor);
    ASSERT_EQ(inputs.size(), 5u);
    EXPECT_LT(test::gradient_error([&] { return input_gradient_norm(*model, images); }, inputs, 1e-6), 1e-4);
  }
}

// The kernels and torch's operations compute the same.
TEST(TwiceDifferentiable, ChangesNoValues) {
  const auto model = tiny_vit_moe({});
  const at::Tensor images = images_for(at::kFloat), plain = compute_logits(*model, images);
  const at::Tensor gradient = torch::autograd::grad({plain.square().sum()}, {images})[0];
  EXPECT_THROW(torch::autograd::grad({compute_logits(*model, images).sum()}, {images}, {}, true, /*create_graph=*/true),
               Error);
  {
    const TwiceDifferentiable twice;
    const at::Tensor logits = compute_logits(*model, images);
    EXPECT_TRUE(near(logits, plain, 1e-4));
    EXPECT_TRUE(near(torch::autograd::grad({logits.square().sum()}, {images})[0], gradient, 1e-3));
  }
  EXPECT_TRUE(at::equal(compute_logits(*model, images), plain));  // back on the kernels
  EXPECT_NO_THROW(input_gradient_norm(*model, images).backward());
}

}  // namespace sparsight::twice_differentiable_test
