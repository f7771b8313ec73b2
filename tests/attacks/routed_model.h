// A small vision transformer with two MoE layers, its images, and their classes, for attacks on routed models.
#pragma once

#include "sparsight/attacks/attacked_image_model.h"
#include "sparsight/catalogue/model_sections.h"
#include "sparsight/core/config.h"
#include "sparsight/models/make_model.h"
#include "sparsight/nn/init.h"
#include "sparsight/train/run_config.h"
#include "tests/support/random_tensor.h"

namespace sparsight::test {

// 5 tokens of width 12 for images [3,8,8], two MoE layers of 4 experts with k = 2 but for `settings`, 5 classes, with
// random weights that are far from 0.
inline std::shared_ptr<ImageModel> routed_vit(const std::vector<std::string>& settings = {},
                                              at::ScalarType type = torch::kDouble) {
  Config config;
  for (const char* setting : {"model.name=vit", "model.width=12", "model.depth=2", "model.heads=2", "model.patch=4",
                              "moe.blocks=[0, 1]", "moe.experts=4", "router.k=2"})
    config.set(setting);
  for (const std::string& setting : settings) config.set(setting);
  auto model = make_model(resolve(config, config_sections()), {3, 8, 8, 5}, {{0.5, 0.4, 0.3}, {0.2, 0.3, 0.25}});
  initialize(*model, 3);
  model->to(type);
  const torch::NoGradGuard no_grad;
  uint64_t seed = 10;
  for (const auto& p : model->named_parameters())
    if (p.value().dim() > 1) p.value().copy_(0.4 * random_tensor(p.value().sizes(), ++seed, type));
  return model;
}

inline AttackBatch routed_images(AttackedModel& model, int64_t count, at::ScalarType type = torch::kDouble) {
  const torch::NoGradGuard no_grad;
  const at::Tensor x = (0.5 + 0.2 * random_tensor({count, 3, 8, 8}, 8)).clamp(0.05, 0.95).to(type);
  const at::Tensor image = torch::arange(count, torch::kLong);
  return {x, {model.forward(x, {image, 0}).logits.argmax(1)}, image};
}

inline ForwardMode losses_mode(bool noise = false) {
  ForwardMode mode = ForwardMode::evaluation();
  mode.losses = true;
  mode.noise = noise;
  return mode;
}

}  // namespace sparsight::test
