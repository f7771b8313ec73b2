#include "sparsight/models/block_mlp.h"

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

// of_tokens: [B,S], or undefined. Returns [N].
at::Tensor of_pool(const at::Tensor& of_tokens, const TokenLayout& layout, const char* name) {
  if (!of_tokens.defined()) return of_tokens;
  if (of_tokens.dim() != 2 || of_tokens.size(0) != layout.images || of_tokens.size(1) != layout.per_image)
    fail(name, " of tokens has the shape ", of_tokens.sizes(), ", expected [", layout.images, ", ", layout.per_image,
         "], as the layer has tokens");
  return of_tokens.reshape({-1});
}

}  // namespace

PoolInfo pool_info(const ImageInfo& info, const TokenLayout& layout) {
  PoolInfo pool;
  pool.first_token = info.first_image * layout.per_image;
  pool.target = info.target;
  pool.token_id = of_pool(info.token_id, layout, "token_id");
  pool.priority = of_pool(info.priority, layout, "priority");
  return pool;
}

void take_results(MoeOutput& moe, ModelOutput& out) {
  if (moe.soft)
    out.soft_routings.push_back(std::move(*moe.soft));
  else
    out.routings.push_back(std::move(moe.routing));
  for (NamedLoss& loss : moe.losses) out.losses.push_back(std::move(loss));
}

BlockMlp::BlockMlp(torch::nn::Module& owner, const MoePlace& place, const MoeSpec* moe) {
  if (moe)
    moe_ = owner.register_module("mlp", std::make_shared<MoeLayer>(*moe, place));
  else
    mlp_ = owner.register_module("mlp", Mlp(MlpOptions{place.width, place.mlp_hidden}));
}

at::Tensor BlockMlp::forward(const at::Tensor& x, TokenLayout layout, const ModelInput& input, ModelOutput& out) {
  if (!moe_) return mlp_->forward(x);
  layout.images = x.size(0);
  layout.per_image = x.size(1);
  MoeOutput moe = moe_->forward(x.reshape({-1, x.size(2)}), layout, input.random, pool_info(input.info, layout));
  take_results(moe, out);
  return moe.tokens.view_as(x);
}

}  // namespace sparsight
