#include "sparsight/engine/program_builder.h"

#include "sparsight/core/error.h"
#include "sparsight/engine/steps/pixels.h"

namespace sparsight::engine {
namespace {

Shape input_planes(const PixelInput& pixels) {
  return {.height = pixels.channels, .width = pixels.height, .columns = pixels.width};
}

}  // namespace

ProgramBuilder::ProgramBuilder(PixelInput pixels, const WeightForm& form) : pixels_(std::move(pixels)), form_(form) {
  SPARSIGHT_CHECK(pixels_.mean.size() == pixels_.std.size());
}

Value ProgramBuilder::new_value(const Shape& shape) { return {values_++, shape}; }

Value ProgramBuilder::normalised(bool to_map) {
  const Shape planes = input_planes(pixels_);
  const Value given{Program::kInput, planes};
  if (!to_map && pixels_.mean.empty()) return given;
  const Shape map{.height = pixels_.height, .width = pixels_.width, .columns = pixels_.channels};
  return add<NormalizeStep>(given, new_value(to_map ? map : planes), pixels_.channels, pixels_.mean, pixels_.std,
                            to_map);
}

int64_t ProgramBuilder::add_route(const std::string& layer, Value tokens, std::unique_ptr<Router> router,
                                  RoutePolicy policy) {
  steps_.push_back(std::make_unique<RouteStep>(layer, routings_, tokens, std::move(router), std::move(policy)));
  routing_of_layer_[layer] = routings_;
  return routings_++;
}

void ProgramBuilder::share_routing(int64_t number, const std::vector<std::string>& layers) {
  for (const std::string& layer : layers) routing_of_layer_[layer] = number;
}

int64_t ProgramBuilder::find_routing(const std::string& layer) const {
  const auto found = routing_of_layer_.find(layer);
  SPARSIGHT_CHECK(found != routing_of_layer_.end());
  return found->second;
}

Program ProgramBuilder::finish(Value features, Value logits) {
  return {input_planes(pixels_), std::move(steps_), features, logits};
}

}  // namespace sparsight::engine
