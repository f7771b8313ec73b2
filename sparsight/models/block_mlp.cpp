#include "sparsight/models/block_mlp.h"

namespace sparsight {

BlockMlp::BlockMlp(torch::nn::Module& owner, const MoePlace& place, const MoeSpec* moe) {
  if (moe)
    moe_ = owner.register_module("mlp", std::make_shared<MoeLayer>(*moe, place));
  else
    mlp_ = owner.register_module("mlp", Mlp(MlpOptions{place.width, place.mlp_hidden}));
}

at::Tensor BlockMlp::forward(const at::Tensor& x, TokenLayout layout, const StepRandom& random, ModelOutput& out) {
  if (!moe_) return mlp_->forward(x);
  layout.images = x.size(0);
  layout.per_image = x.size(1);
  MoeOutput moe = moe_->forward(x.reshape({-1, x.size(2)}), layout, random);
  if (moe.soft)
    out.soft_routings.push_back(std::move(*moe.soft));
  else
    out.routings.push_back(std::move(moe.routing));
  for (NamedLoss& loss : moe.losses) out.losses.push_back(std::move(loss));
  return moe.tokens.view_as(x);
}

}  // namespace sparsight
