#include "sparsight/models/adapt_weights.h"

#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/models/vit.h"

namespace sparsight {
namespace {

std::optional<AdaptedTensor> adapt_position_embedding(const Vit& vit, const at::Tensor& source,
                                                      const at::Tensor& target) {
  if (source.dim() != 3 || source.size(0) != 1 || source.size(2) != target.size(2)) return std::nullopt;
  const int64_t patches = source.size(1) - vit.embedded_prefix();
  const int64_t side = patches > 0 ? std::llround(std::sqrt(static_cast<double>(patches))) : 0;
  if (side == 0 || side * side != patches) return std::nullopt;
  const PatchGrid to = vit.grid();
  return AdaptedTensor{resample_position_embedding(source, vit.embedded_prefix(), {side, side}, to, vit.resampling()),
                       cat("resampled from ", side, "x", side, " to ", to.height, "x", to.width, " patches")};
}

std::optional<AdaptedTensor> adapt_channels(const at::Tensor& source, const at::Tensor& target) {
  if (source.dim() != 4 || source.size(1) == 0 || source.size(0) != target.size(0) ||
      source.sizes().slice(2) != target.sizes().slice(2))
    return std::nullopt;
  if (target.size(1) == 1)
    return AdaptedTensor{source.sum(1, /*keepdim=*/true), cat("summed over ", source.size(1), " channels")};
  if (source.size(1) == 1)
    return AdaptedTensor{source.expand_as(target).div(static_cast<double>(target.size(1))),
                         cat("spread over ", target.size(1), " channels")};
  return std::nullopt;
}

}  // namespace

WeightAdapter weight_adapter(const ImageModel& model) {
  const Vit* vit = dynamic_cast<const Vit*>(&model);
  return [vit](const std::string& name, const at::Tensor& source,
               const at::Tensor& target) -> std::optional<AdaptedTensor> {
    if (vit && name == "pos_embed") return adapt_position_embedding(*vit, source, target);
    if (name == "patch_embed.proj.weight" || name == "conv1.weight" || name == "features.0.0.weight" ||
        name == "stem.0.weight")
      return adapt_channels(source, target);
    return std::nullopt;
  };
}

}  // namespace sparsight
