#include "bench/moe/large_layer.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <nlohmann/json.hpp>

#include "bench/moe/contenders.h"
#include "sparsight/nn/init.h"

namespace sparsight::bench {
namespace {

MoeInput make_input(const at::Tensor& tokens, ForwardMode mode, uint64_t step) {
  return {.tokens = tokens, .layout = {1, tokens.size(0), 0, 0, 0}, .mode = mode, .random = {1, step}};
}

}  // namespace

LargeLayer::LargeLayer(int64_t experts, int64_t k, int64_t hidden) {
  const MoeSpec spec = read_moe_spec({{"moe", {{"experts", experts}, {"hidden", hidden}}},
                                      {"losses", Json::object()},
                                      {"router", {{"name", "softmax_topk"}, {"k", k}}}});
  layer_ = std::make_shared<MoeLayer>(spec, LayerContext{.path = "moe", .width = kWidth, .mlp_hidden = hidden});
  initialize(*layer_, 1);
}

Routing LargeLayer::forward(const at::Tensor& tokens) {
  const c10::AutoGradMode no_grad(false);
  return layer_->forward(make_input(tokens, {}, 0)).routing;
}

void LargeLayer::train_step(const at::Tensor& tokens, const at::Tensor& out_grad) {
  const at::Tensor x = tokens.detach().requires_grad_(true);
  const MoeOutput out = layer_->forward(make_input(x, ForwardMode::training(), ++step_));
  at::Tensor loss = (out.tokens * out_grad).sum();
  for (const NamedLoss& part : out.routing.losses) loss = loss + part.weight * part.value;
  loss.backward();
  for (const at::Tensor& parameter : layer_->parameters()) parameter.mutable_grad().reset();
}

double LargeLayer::weight_bytes() const {
  double bytes = 0;
  for (const at::Tensor& parameter : layer_->parameters()) bytes += static_cast<double>(parameter.nbytes());
  return bytes;
}

}  // namespace sparsight::bench
