#include "sparsight/models/smooth_channels.h"

#include <map>

#include "sparsight/core/error.h"
#include "sparsight/models/normed_linear.h"

namespace sparsight {
namespace {

std::vector<NormedLinear> find_normed_linears(ImageModel& model) {
  std::vector<NormedLinear> found;
  for (const auto& module : model.modules())
    if (auto* const block = dynamic_cast<HasNormedLinears*>(module.get()))
      for (NormedLinear& each : block->normed_linears()) found.push_back(std::move(each));
  return found;
}

// The largest magnitude of each channel, [D], by tap.
std::map<std::string, at::Tensor> largest_activations(ImageModel& model, const std::vector<NormedLinear>& layers,
                                                      const std::vector<at::Tensor>& images) {
  std::map<std::string, at::Tensor> largest;
  for (const at::Tensor& batch : images) {
    ModelInput input{.images = batch};
    for (const NormedLinear& layer : layers) input.taps.push_back(layer.tap);
    for (const auto& [tap, value] : model.forward(input).taps) {
      const at::Tensor magnitudes = value.abs().flatten(0, -2).amax(0);
      at::Tensor& so_far = largest[tap];
      so_far = so_far.defined() ? at::maximum(so_far, magnitudes) : magnitudes;
    }
  }
  for (const auto& [tap, value] : largest)
    if (!at::isfinite(value).all().item<bool>()) fail("the output of ", tap, " is not finite; its weights are damaged");
  return largest;
}

}  // namespace

at::Tensor smoothing_factors(const at::Tensor& activations, const at::Tensor& weights, double strength) {
  const at::Tensor factors = activations.pow(strength) / weights.pow(1 - strength);
  return at::where((activations > 0) & (weights > 0) & at::isfinite(factors) & (factors > 0), factors,
                   at::ones_like(factors));
}

int64_t smooth_channels(ImageModel& model, const std::vector<at::Tensor>& images, double strength) {
  const at::NoGradGuard no_grad;
  SPARSIGHT_CHECK(!images.empty() && strength >= 0 && strength <= 1);
  const std::vector<NormedLinear> layers = find_normed_linears(model);
  if (layers.empty())
    fail("the model has no norm in front of a linear layer whose channels could be smoothed; leave out --smooth");
  const std::map<std::string, at::Tensor> activations = largest_activations(model, layers, images);
  for (const NormedLinear& layer : layers) {
    const at::Tensor factors = smoothing_factors(activations.at(layer.tap), layer.weight.abs().amax(0), strength)
                                   .to(layer.weight.scalar_type());
    layer.norm_weight.div_(factors);
    layer.norm_bias.div_(factors);
    layer.weight.mul_(factors);
  }
  return static_cast<int64_t>(layers.size());
}

}  // namespace sparsight
