#include "sparsight/nn/attention.h"

#include "sparsight/nn/layer_scale.h"
#include "sparsight/ops/attention.h"
#include "sparsight/ops/residual_branch.h"

namespace sparsight {
namespace {

// In half precision (under autocast) torch's fused attention is the faster one, but on short sequences two batched
// products and a softmax take under half its time.
constexpr int64_t kShortSequence = 64;

// qkv: [B,S,3D]. Returns [B,Q,D].
at::Tensor attend(const at::Tensor& qkv, int64_t heads, int64_t queries) {
  const bool half = qkv.scalar_type() == at::kBFloat16 || qkv.scalar_type() == at::kHalf;
  if (!half || qkv.size(1) <= kShortSequence) return attention(qkv, heads, queries);
  const int64_t images = qkv.size(0), tokens = qkv.size(1), width = qkv.size(2) / 3;
  const at::Tensor parts = qkv.view({images, tokens, 3, heads, width / heads}).permute({2, 0, 3, 1, 4});
  return at::scaled_dot_product_attention(parts.select(0, 0).narrow(2, 0, queries), parts.select(0, 1),
                                          parts.select(0, 2))  // [B,H,Q,d]
      .transpose(1, 2)
      .reshape({images, queries, width});
}

}  // namespace

AttentionImpl::AttentionImpl(const AttentionOptions& options)
    : qkv_(register_module("qkv", Linear(options.width, 3 * options.width, options.qkv_bias))),
      proj_(register_module("proj", Linear(options.width, options.width))),
      heads_(options.heads) {
  if (!options.qk_norm) return;
  q_norm_ = register_module("q_norm", LayerNorm(options.width / options.heads, options.norm_eps));
  k_norm_ = register_module("k_norm", LayerNorm(options.width / options.heads, options.norm_eps));
}

at::Tensor AttentionImpl::with_normed_heads(const at::Tensor& qkv) {
  if (!q_norm_) return qkv;
  const int64_t images = qkv.size(0), tokens = qkv.size(1), width = qkv.size(2) / 3;
  const at::Tensor parts = qkv.view({images, tokens, 3, heads_, width / heads_});
  const auto normed = [&](LayerNorm& norm, int64_t part) {
    return norm->forward(parts.select(2, part)).to(qkv.scalar_type());  // under autocast norms are fp32
  };
  return at::stack({normed(q_norm_, 0), normed(k_norm_, 1), parts.select(2, 2)}, 2).view(qkv.sizes());
}

at::Tensor AttentionImpl::project(const at::Tensor& qkv, int64_t queries, const at::Tensor& gamma) {
  const LinearWeights proj = scaled(*proj_, gamma);
  return fully_connected(attend(with_normed_heads(qkv), heads_, queries), proj.weight, proj.bias);
}

at::Tensor AttentionImpl::forward(const at::Tensor& x) { return project(qkv_->forward(x), x.size(1)); }

at::Tensor AttentionImpl::forward(const at::Tensor& x, LayerNorm norm) {
  return project(fully_connected_of_norm(x, *norm, *qkv_), x.size(1));
}

at::Tensor AttentionImpl::forward_residual(const at::Tensor& x, LayerNorm norm, const BranchDrop& drop,
                                           const at::Tensor& gamma) {
  if (!suits_kernels(x) || q_norm_)  // the one operation has no step between its products
    return add_residual(project(fully_connected_of_norm(x, *norm, *qkv_), x.size(1), gamma), {x, drop});
  const LinearWeights proj = scaled(*proj_, gamma);
  return attention_residual(x.contiguous(), norm->row_norm(),
                            {qkv_->weight, qkv_->bias, proj.weight, proj.bias, heads_}, drop);
}

at::Tensor AttentionImpl::forward_residual(const at::Tensor& x, LayerNorm norm, const BranchDrop& drop, int64_t queries,
                                           const at::Tensor& gamma) {
  if (queries == x.size(1)) return forward_residual(x, norm, drop, gamma);
  return add_residual(project(fully_connected_of_norm(x, *norm, *qkv_), queries, gamma),
                      {x.narrow(1, 0, queries), drop});
}

Cost AttentionImpl::cost(int64_t tokens, int64_t queries) const {
  const Cost cost = attention_cost({proj_->weight.size(0), heads_, qkv_->bias.defined()}, tokens, queries);
  if (!q_norm_) return cost;
  return cost + on_units(q_norm_->cost(), heads_ * queries) + on_units(k_norm_->cost(), heads_ * tokens);
}

}  // namespace sparsight
