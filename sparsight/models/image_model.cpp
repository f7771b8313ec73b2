#include "sparsight/models/image_model.h"

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/models/normed_linear.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight {

namespace {

void check_numbers(const at::Tensor& numbers, const char* name, int64_t images) {
  if (!numbers.defined()) return;
  if (numbers.scalar_type() != torch::kLong || numbers.sizes() != at::IntArrayRef({images}))
    fail(name, " must be int64 of shape [", images, "], one number per image; got ", numbers.scalar_type(), " ",
         numbers.sizes());
  if (images > 0 && numbers.min().item<int64_t>() < 0) fail(name, " has a negative number; numbers start at 0");
}

// tap_names(), and the norms in front of linear layers.
std::vector<std::string> known_taps(const ImageModel& model) {
  std::vector<std::string> names = model.tap_names();
  for (const auto& module : model.modules(/*include_self=*/false))
    if (auto* const block = dynamic_cast<HasNormedLinears*>(module.get()))
      for (const NormedLinear& each : block->normed_linears()) names.push_back(each.tap);
  return names;
}

}  // namespace

ImageModel::ImageModel(const ImageShape& image, const PixelStatistics& pixels) : image_(image) {
  cpu::adapt_thread_waiting();
  if (!pixels.empty()) normalize_ = register_module("normalize", std::make_shared<Normalize>(pixels, image.channels));
}

ModelOutput ImageModel::forward(const ModelInput& input) {
  ModelOutput out = features(input);
  out.logits = classify(out.features);
  return out;
}

ModelOutput ImageModel::features(const ModelInput& input) {
  check_input(input, image_);
  if (!input.routings.empty()) {
    std::vector<std::string> routers;
    for_each_router_owner(*this, [&](HasRouter& owner) { routers.push_back(owner.routing_name()); });
    check_routings(input.routings, routers);
  }
  if (!input.taps.empty())
    for (const std::vector<std::string> known = known_taps(*this); const std::string& name : input.taps)
      find_position(name, known, "tap of the model");
  ModelInput normalized = input;
  if (normalize_) normalized.images = normalize_->forward(input.images);
  ModelOutput out = run(normalized);
  average_over_routers(out.losses);
  for (const std::string& name : input.taps) SPARSIGHT_CHECK(out.taps.count(name) == 1);
  return out;
}

void ImageModel::fit(const at::Tensor& images) {
  check_images(images, image_);
  fit_to(normalize_ ? normalize_->forward(images) : images);
}

engine::Program ImageModel::compile(const engine::WeightForm& form) const {
  const PixelStatistics pixels = pixel_statistics();
  engine::PixelInput input{image_.channels, image_.height, image_.width, pixels.mean, pixels.std};
  engine::ProgramBuilder builder(std::move(input), form);
  const CompiledOutputs outputs = compile_steps(builder);
  return builder.finish(outputs.features, outputs.logits);
}

ImageModel::CompiledOutputs ImageModel::compile_steps(engine::ProgramBuilder&) const {
  fail("models of this kind have no form without tensors: they have no compile_steps()");
}

PixelStatistics ImageModel::pixel_statistics() const {
  return normalize_ ? normalize_->statistics() : PixelStatistics();
}

void ImageModel::set_pixel_statistics(const PixelStatistics& pixels) {
  if (!normalize_)
    fail_usage("the model does not normalise, so its pixel statistics cannot be set to ", to_text(pixels));
  normalize_->set(pixels);
}

void ImageModel::keep_tap(const ModelInput& input, ModelOutput& out, const at::Tensor& x, const std::string& name) {
  if (input.is_tapped(name)) out.taps[name] = x;
}

void check_input(const ModelInput& input, const ImageShape& shape) {
  check_images(input.images, shape);
  check_numbers(input.info.image, "ImageInfo::image", input.images.size(0));
  check_numbers(input.info.group, "ImageInfo::group", input.images.size(0));
}

void check_routings(const std::map<std::string, Routing>& routings, const std::vector<std::string>& routers) {
  for (const auto& [name, routing] : routings)
    if (std::ranges::find(routers, name) == routers.end())
      fail("the routing is for \"", printable(name),
           "\", but the routers of the model are: ", routers.empty() ? "none" : join(routers),
           "; use a routing saved from this model");
}

void check_images(const at::Tensor& images, const ImageShape& shape) {
  if (!images.is_floating_point())
    fail("the model takes pixels in 0..1 as floating-point numbers, got ", images.scalar_type(),
         "; divide bytes by 255");
  if (images.dim() == 4 && images.size(1) == shape.channels && images.size(2) == shape.height &&
      images.size(3) == shape.width)
    return;
  fail("the model takes images of shape [B, ", shape.channels, ", ", shape.height, ", ", shape.width, "], got ",
       images.sizes(), "; resize them with the [transforms] section");
}

std::vector<PartCost> ImageModel::cost(const CostOptions&) const {
  std::vector<PartCost> parts;
  for (const auto& item : named_parameters()) {
    const std::string part = item.key().substr(0, item.key().find('.'));
    if (parts.empty() || parts.back().part != part) parts.push_back({part, {}});
    Cost cost = parameters_cost(item.value().numel());
    if (item.value().dim() >= 2) cost.multiply_adds = cost.parameters;
    cost.assumed = true;
    parts.back().cost = parts.back().cost + cost;
  }
  return parts;
}

at::Tensor as_logits(const at::Tensor& head) {
  return head.scalar_type() == torch::kDouble ? head : head.to(torch::kFloat);
}

int64_t head_outputs(int64_t classes) { return classes == 2 ? 1 : classes; }

at::Tensor two_class_logits(const at::Tensor& f) { return torch::cat({torch::zeros_like(f), f}, 1); }

}  // namespace sparsight
