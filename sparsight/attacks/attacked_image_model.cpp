#include "sparsight/attacks/attacked_image_model.h"

#include "sparsight/attacks/frozen_parameters.h"
#include "sparsight/core/error.h"
#include "sparsight/moe/moe_layer.h"

namespace sparsight {

AttackedImageModel::AttackedImageModel(std::shared_ptr<ImageModel> model, const AttackedModelOptions& options)
    : AttackedModel(options.range), model_(std::move(model)), options_(options) {
  const ForwardMode& mode = options_.mode;
  const char* refused = mode.batch_statistics ? "batch_statistics"
                        : mode.dropout        ? "dropout"
                        : mode.drop_path      ? "drop_path"
                                              : nullptr;
  if (refused)
    fail_usage("an attack got a forward mode with ", refused,
               ", which is for training; use ForwardMode::evaluation(), with noise, capacity, choices or losses added");
  for_each_router_owner(*model_, [&](HasRouter& owner) {
    const Router& router = *owner.own_router();
    coupling_.choices = coupling_.choices || router.mixes_images(mode);
    randomised_ = randomised_ || (mode.noise && !router.random_purposes().empty());
  });
}

ModelOutput AttackedImageModel::run(const at::Tensor& pixels, const AttackPass& pass) {
  const FrozenParameters frozen(*model_);
  const bool canonical = range() == PixelRange{};
  ModelOutput output = model_->forward({.images = canonical ? pixels : (pixels - range().low) / range().width(),
                                        .mode = options_.mode,
                                        .random = {options_.seed, pass.step},
                                        .info = {.image = pass.image},
                                        .at_experts = pass.at_experts});
  bool sampled = false;
  for (const Routing& routing : output.routings) {
    coupling_.capacity = coupling_.capacity || routing.capacity.defined();
    sampled = sampled || routing.sampled;
  }
  for (const SoftRouting& routing : output.soft_routings) sampled = sampled || routing.sampled;
  randomised_ = sampled || (passed_ && randomised_);
  passed_ = true;
  return output;
}

}  // namespace sparsight
