#include "sparsight/nn/attention_pool.h"

#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>

#include <cmath>

#include "sparsight/engine/steps/attention_pool.h"
#include "sparsight/engine/steps/rows.h"
#include "sparsight/nn/layer_scale.h"
#include "sparsight/nn/packed_weights.h"

namespace sparsight {

AttentionPoolImpl::AttentionPoolImpl(const AttentionPoolOptions& options)
    : options_(options), latent_(register_parameter("latent", parameter_zeros({1, 1, options.width}))) {
  const int64_t width = options.width;
  q_ = register_module("q", Linear(width, width, options.bias));
  kv_ = register_module("kv", Linear(width, 2 * width, options.bias));
  proj_ = register_module("proj", Linear(width, width));
  norm_ = register_module("norm", LayerNorm(width, options.norm_eps));
  mlp_ = register_module("mlp", Mlp(MlpOptions{width, options.mlp_hidden}));
}

at::Tensor AttentionPoolImpl::forward(const at::Tensor& x) {
  const int64_t images = x.size(0), tokens = x.size(1), size = options_.width / options_.heads;
  const at::Tensor kv = kv_->forward(x).view({images, tokens, 2, options_.heads, size}).permute({2, 0, 3, 1, 4});
  const at::Tensor q = q_->forward(latent_).view({1, options_.heads, 1, size});
  // Torch's fused attention has no second derivatives, and saves little with one query.
  const at::Tensor scores = at::matmul(q, kv.select(0, 0).transpose(2, 3)) / std::sqrt(static_cast<double>(size));
  const at::Tensor mixed = at::matmul(at::softmax(scores, 3), kv.select(0, 1));  // [B,H,1,d]
  const at::Tensor y = proj_->forward(mixed.reshape({images, 1, options_.width}));
  return mlp_->forward_residual(y, norm_).select(1, 0);
}

engine::Value AttentionPoolImpl::compile(engine::ProgramBuilder& builder, engine::Value x) const {
  const torch::NoGradGuard no_grad;
  const int64_t width = options_.width;
  const engine::Shape vector = engine::Shape::vector(width), hidden = engine::Shape::vector(options_.mlp_hidden);
  engine::Shape keys = x.shape;
  keys.columns = 2 * width;
  const at::Tensor q = fully_connected(latent_, q_->weight, q_->bias);
  const engine::Value kv =
      builder.add<engine::LinearStep>(x, engine::Value{}, builder.new_value(keys), packed_linear(*kv_, builder.type()));
  const engine::Value mixed =
      builder.add<engine::AttentionPoolStep>(kv, builder.new_value(vector), to_floats(q), options_.heads);
  const engine::Value y = engine::add_linear(builder, mixed, packed_linear(*proj_, builder.type()));
  const engine::Value normed = builder.add<engine::NormStep>(y, builder.new_value(vector), packed_norm(*norm_));
  const engine::Value active =
      builder.add<engine::LinearStep>(normed, engine::Value{}, builder.new_value(hidden),
                                      packed_linear(*mlp_->fc1(), builder.type()), mlp_->activation());
  return builder.add<engine::LinearStep>(active, y, builder.new_value(vector),
                                         packed_linear(*mlp_->fc2(), builder.type()));
}

Cost AttentionPoolImpl::cost(int64_t tokens) const {
  const AttentionShape attention{options_.width, options_.heads, options_.bias};
  return parameters_cost(options_.width) + attention_cost(attention, tokens, /*queries=*/1) + norm_->cost() +
         mlp_->cost() + elementwise_cost(options_.width);  // the residual
}

void AttentionPoolImpl::initialize(const InitRandom& random) {
  init_normal(latent_, 1 / std::sqrt(static_cast<double>(options_.width)), random.stream("latent"));
}

}  // namespace sparsight
