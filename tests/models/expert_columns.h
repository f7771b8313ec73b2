// Small convolutional networks whose late blocks are experts of whole images, for tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sparsight/io/weights.h"
#include "sparsight/models/register_models.h"
#include "sparsight/models/upcycle.h"
#include "sparsight/nn/init.h"
#include "tests/support/random_tensor.h"

namespace sparsight::test {

// The blocks with experts: of the CNN and the ResNet one with a projection and one with the identity beside the branch,
// of MobileNetV2 two with the identity (features.15, .16) and one without a shortcut (features.17).
struct ColumnCase {
  std::string model;
  Json settings;
  std::vector<int64_t> blocks;
  std::string last_shared;  // path of the block before the first of them, and of the first MoE layer
  std::string first_layer;
};

inline std::vector<ColumnCase> column_cases() {
  return {{"cnn", {{"widths", {8, 12}}, {"blocks", 2}}, {-2, -1}, "blocks.1", "blocks.2.moe"},
          {"resnet", {{"base_width", 4}, {"stem", "cifar"}}, {-2, -1}, "layer3.1", "layer4.0.moe"},
          {"mobilenet",
           {{"width", 0.1}, {"stem", "cifar"}, {"dropout", 0}},
           {-3, -2, -1},
           "features.14",
           "features.15.moe"}};
}

struct ColumnSettings {
  int64_t experts = 3;
  Json router = {{"name", "per_image"}};
  Json moe = Json::object();
};

// Images of different colours.
inline at::Tensor column_images(int64_t count, int64_t side = 16) {
  const at::Tensor colour = random_tensor({count, 3, 1, 1}, 6, torch::kFloat) * 2;
  return random_tensor({count, 3, side, side}, 5, torch::kFloat) + colour;
}

// Changes the weights of a per_image router so that it sends some images here and some there: the logits of an average
// image become 0, and their standard deviation 2.
inline void spread_choices(ImageModel& model, const ColumnCase& c, const at::Tensor& images) {
  const torch::NoGradGuard no_grad;
  ModelInput input{images};
  input.taps = {c.last_shared};
  const at::Tensor pooled = model.forward(input).taps.at(c.last_shared).mean({2, 3});
  const at::Tensor seen = at::layer_norm(pooled, {pooled.size(1)}), mean = seen.mean(0);
  at::Tensor weight = model.named_parameters()["router.weight"];
  weight.sub_(at::outer(weight.mv(mean), mean) / mean.dot(mean));
  weight.mul_(2 / seen.matmul(weight.t()).std());
}

// settings: null for the dense network. Weights and running averages of order 1, so that every term counts.
inline std::shared_ptr<ImageModel> column_model(const ColumnCase& c, const ColumnSettings* settings, uint64_t seed,
                                                int64_t side = 16) {
  MoeSpec spec = default_moe_spec();
  if (settings) {
    Json moe = settings->moe, router = settings->router;
    moe["blocks"] = c.blocks, moe["experts"] = settings->experts;
    router["scope"] = "model";
    spec = read_moe_spec({{"moe", moe},
                          {"experts", {{"name", "mlp"}}},
                          {"capacity", Json::object()},
                          {"losses", Json::object()},
                          {"router", router}});
  }
  auto model = models().make(c.model, c.settings, "model", ModelContext{{3, side, side, 5}, spec});
  initialize(*model, seed);
  const torch::NoGradGuard no_grad;
  uint64_t number = 100 * seed;
  for (const auto& p : model->named_parameters()) {
    if (p.value().dim() == 1)
      p.value().add_(random_tensor(p.value().sizes(), number++, torch::kFloat) * 0.3);
    else if (p.value().dim() == 4)  // maps keep their size, also through depthwise convolutions
      p.value().mul_(1.4 / p.value().flatten(1).square().sum(1).mean().sqrt());
  }
  for (const auto& b : model->named_buffers()) {
    if (b.key().ends_with("running_mean"))
      b.value().add_(random_tensor(b.value().sizes(), number++, torch::kFloat) * 0.3);
    if (b.key().ends_with("running_var"))
      b.value().add_(random_tensor(b.value().sizes(), number++, torch::kFloat).square());
  }
  if (settings && settings->router.at("name") == "per_image" && settings->experts > 1)
    spread_choices(*model, c, column_images(16, side));
  return model;
}

// Each expert becomes a copy of the dense network's block.
inline LoadReport copy_into_columns(ImageModel& columns, const ImageModel& dense) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : named_weights(dense)) tensors.emplace_back(name, tensor.detach().clone());
  LoadOptions options;
  options.derive = upcycle_dense_mlps(columns, {});
  return load_weights(columns, tensors, options);
}

}  // namespace sparsight::test
