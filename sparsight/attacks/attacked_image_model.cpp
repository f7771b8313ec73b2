#include "sparsight/attacks/attacked_image_model.h"

#include <algorithm>

#include "sparsight/attacks/frozen_parameters.h"
#include "sparsight/core/error.h"

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
}

ModelOutput AttackedImageModel::run(const at::Tensor& pixels, const AttackPass& pass) {
  const FrozenParameters frozen(*model_);
  const bool canonical = range() == PixelRange{};
  ModelOutput output = model_->forward({.images = canonical ? pixels : (pixels - range().low) / range().width(),
                                        .mode = options_.mode,
                                        .random = {options_.seed, pass.step},
                                        .info = {.image = pass.image},
                                        .at_experts = pass.at_experts});
  coupled_ = coupled_ ||
             std::ranges::any_of(output.routings, [](const Routing& routing) { return routing.capacity.defined(); });
  return output;
}

}  // namespace sparsight
