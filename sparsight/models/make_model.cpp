#include "sparsight/models/make_model.h"

#include <algorithm>

#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/data/transforms/pipeline.h"
#include "sparsight/data/transforms/transform_options.h"
#include "sparsight/models/register_models.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/nn/parameter_memory.h"

namespace sparsight {
namespace {

template <class Named>
void copy_into(const Named& from, const Named& to) {
  SPARSIGHT_CHECK(from.size() == to.size());
  for (const auto& item : from) {
    at::Tensor target = to[item.key()];
    if (item.value().sizes() != target.sizes())
      fail("cannot copy the model: ", item.key(), " has shape ", item.value().sizes(), ", but was built with ",
           target.sizes(), "; copy it before packing its weights");
    target.set_data(item.value().detach().clone());  // with its dtype and device
    target.set_requires_grad(item.value().requires_grad());
  }
}

// Scheduled settings have changed since the model was built.
void copy_settings(const ImageModel& from, const ImageModel& to) {
  std::vector<Json> settings;
  for_each_router_owner(from, [&](HasRouter& owner) {
    owner.declare_settings([&](const std::string&, OptionSet& set) { settings.push_back(values(set)); });
  });
  size_t next = 0;
  for_each_router_owner(to, [&](HasRouter& owner) {
    owner.declare_settings(
        [&](const std::string& section, OptionSet& set) { assign(set, settings.at(next++), section); });
  });
}

void check_deviations(const at::Tensor& std) {
  if (!std.is_floating_point() || !(std > 0).all().item<bool>() || !std.isfinite().all().item<bool>())
    fail("tensor normalize.std must be finite and above 0; the file is damaged, use another copy");
}

}  // namespace

PixelStatistics pixel_statistics(const Json& resolved) {
  const auto transforms = read_section<TransformOptions>(resolved, "transforms");
  const PixelStatistics train = TransformPipeline(transforms.train, "transforms.train").statistics(),
                        eval = TransformPipeline(transforms.eval, "transforms.eval").statistics();
  if (train == eval) return eval;
  fail_usage("[transforms] train and eval normalize differently (", to_text(train), "; ", to_text(eval),
             "), but a model has one normalisation; give both lists the same normalize step");
}

std::shared_ptr<ImageModel> make_model(const Json& resolved, const ImageShape& image) {
  return make_model(resolved, image, pixel_statistics(resolved));
}

std::shared_ptr<ImageModel> make_model(const Json& resolved, const ImageShape& image, const PixelStatistics& pixels,
                                       const dist::ExpertRanks& ranks) {
  ModelContext context{image, read_moe_spec(resolved), pixels};
  context.moe.spread_experts(ranks);
  auto model = make_component(models(), resolved, "model", context);
  model->set_definition({resolved, image, pixels, ranks});
  return model;
}

std::shared_ptr<ImageModel> clone_model(const ImageModel& model) {
  const auto definition = model.definition();
  if (!definition) fail("cannot copy the model: only models built by make_model() can be copied");
  const ParameterBound bound = bound_to_free_memory("copy of the model");
  auto copy = make_model(definition->config, definition->image, definition->pixels, definition->ranks);
  const torch::NoGradGuard no_grad;
  copy_into(model.named_parameters(), copy->named_parameters());
  copy_into(model.named_buffers(), copy->named_buffers());
  copy_settings(model, *copy);
  return copy;
}

NamedTensors add_missing_buffers(NamedTensors weights, const ImageModel& model) {
  constexpr int64_t kManyBatches = int64_t{1} << 40;
  for (const auto& [name, tensor] : weights)
    if (name == "normalize.std") check_deviations(tensor);
  for (const auto& buffer : model.named_buffers()) {
    const std::string& name = buffer.key();
    const bool counts = name.ends_with("num_batches_tracked");
    if (!counts && !is_pixel_statistics(name)) continue;
    if (std::ranges::any_of(weights, [&](const auto& entry) { return entry.first == name; })) continue;
    weights.emplace_back(name, counts ? at::full_like(buffer.value(), kManyBatches) : buffer.value());
  }
  return weights;
}

}  // namespace sparsight
