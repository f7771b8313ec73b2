#include "sparsight/models/vit_block.h"

#include "sparsight/nn/dropout.h"

namespace sparsight {

VitBlock::VitBlock(const VitBlockOptions& options, const MoeSpec* moe)
    : options_(options),
      norm1_(register_module("norm1", LayerNorm(options.attention.width))),
      attn_(register_module("attn", Attention(options.attention))),
      norm2_(register_module("norm2", LayerNorm(options.attention.width))),
      mlp_(*this, {options.path + ".mlp", options.attention.width, options.mlp_hidden}, moe) {}

at::Tensor VitBlock::regularize(const at::Tensor& branch, const StepRandom& random, const std::string& name) const {
  if (!is_training()) return branch;
  const at::Tensor kept = dropout(branch, options_.dropout, random.stream(options_.path + name + ".dropout"));
  return drop_path(kept, options_.drop_path, random.stream(options_.path + name + ".drop_path"));
}

at::Tensor VitBlock::forward(const at::Tensor& x, const TokenLayout& layout, const StepRandom& random,
                             ModelOutput& out) {
  const at::Tensor mixed = x + regularize(attn_->forward(norm1_->forward(x)), random, ".attn");
  return mixed + regularize(mlp_.forward(norm2_->forward(mixed), layout, random, out), random, ".mlp");
}

}  // namespace sparsight
