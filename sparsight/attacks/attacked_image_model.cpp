#include "sparsight/attacks/attacked_image_model.h"

#include "sparsight/attacks/frozen_parameters.h"
#include "sparsight/core/error.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/ops/data_parallel.h"

namespace sparsight {

AttackedImageModel::AttackedImageModel(std::shared_ptr<ImageModel> model, const AttackedModelOptions& options)
    : AttackedModel(options.range), model_(std::move(model)), options_(options), packed_(model_->parameters()) {
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
    has_routers_ = true;
    coupling_.choices = coupling_.choices || router.mixes_images(mode);
    randomised_ = randomised_ || (mode.noise && !router.random_purposes().empty());
  });
}

ModelOutput AttackedImageModel::run(const at::Tensor& pixels, const AttackPass& pass) {
  const FrozenParameters frozen(*model_);
  packed_.refresh();
  const PackedCacheScope packed_scope(&packed_);
  const at::Tensor images = range() == PixelRange{} ? pixels : (pixels - range().low) / range().width();
  const auto forward = [&](const at::Tensor& some, const at::Tensor& numbers) {
    const ModelInput input{.images = some,
                           .mode = options_.mode,
                           .random = {options_.seed, pass.step},
                           .info = {.image = numbers},
                           .pre_experts_hook = pass.pre_experts_hook};
    if (options_.program && ProgramModel::takes(input)) return options_.program->forward(input);
    if (options_.only_program)
      fail_usage(
          "packed weights answer in evaluation alone: without gradients, noise, losses of routers and attacks on ",
          "the routing; leave out --weights, or these");
    return model_->forward(input);
  };
  if (!has_routers_ && !options_.program) {
    ModelOutput output;
    const auto part = [&](const at::Tensor& some, int64_t first) {
      return forward(some, pass.image.defined() ? pass.image.narrow(0, first, some.size(0)) : pass.image).logits;
    };
    output.logits = data_parallel(images, part);
    return output;
  }
  ModelOutput output = forward(images, pass.image);
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
