#include "sparsight/infer/predict.h"

#include <algorithm>

#include "sparsight/analysis/router_accuracy.h"
#include "sparsight/core/error.h"

namespace sparsight {
namespace {

LayerExperts layer_experts(const Routing& routing) {
  const at::Tensor counts = at::bincount(routing.expert.masked_select(routing.kept), {}, routing.experts)
                                .to(at::kCPU, at::kLong)
                                .contiguous();
  return rank_experts(routing.layer,
                      {counts.const_data_ptr<int64_t>(), counts.const_data_ptr<int64_t>() + counts.numel()});
}

// routing: of one image.
std::optional<RoutedSuperClass> routed_super_class(const Routing& routing, const LoadedModel& loaded) {
  const std::vector<std::string>& names = loaded.data.super_classes;
  if (loaded.super_class_of.empty() || routing.experts != std::ssize(names)) return std::nullopt;
  const at::Tensor probabilities = router_probabilities(routing, 1);
  if (!probabilities.defined()) return std::nullopt;
  const int64_t number = probabilities[0].argmax().item<int64_t>();
  return RoutedSuperClass{number, names[static_cast<size_t>(number)], probabilities[0][number].item<double>()};
}

at::Tensor transformed(const LoadedModel& loaded, const at::Tensor& image, const std::string& name) {
  try {
    return model_image(loaded, image);
  } catch (const Error& error) {
    fail(name, ": ", error.what());
  }
}

// logits: [K].
std::vector<ClassProbability> likely_classes(const LoadedModel& loaded, const at::Tensor& logits,
                                             const std::string& name, int64_t top) {
  const at::Tensor probabilities = class_probabilities(logits.to(at::kDouble), loaded.task_loss);
  if (!probabilities.isfinite().all().item<bool>())
    fail(name, ": the model's output is not finite; its training failed or the image's values are out of range");
  const auto [values, labels] = probabilities.topk(std::min(top, probabilities.size(0)));
  std::vector<ClassProbability> classes;
  for (int64_t i = 0; i < values.size(0); ++i) {
    const int64_t label = labels[i].item<int64_t>();
    classes.push_back({label, loaded.data.classes.at(static_cast<size_t>(label)), values[i].item<double>()});
  }
  return classes;
}

}  // namespace

std::vector<Prediction> predict_batch(const LoadedModel& loaded, const at::Tensor& inputs,
                                      const std::vector<std::string>& names, int64_t top, const Routings& replay) {
  const torch::NoGradGuard no_grad;
  const int64_t images = inputs.size(0);
  ModelInput input{.images = inputs, .routings = replay};
  if (images > 1)  // random numbers, if the router draws any, are those of an image alone
    input.info = {.image = at::zeros({images}, at::kLong), .group = at::arange(images, at::kLong)};
  const ModelOutput output = loaded.forward(input);
  const Routings routings = to_routings(output);
  const RoutingReplay parts = images > 1 ? RoutingReplay(routings) : RoutingReplay();
  std::vector<Prediction> predictions;
  for (int64_t i = 0; i < images; ++i) {
    const std::string& name = names.at(static_cast<size_t>(i));
    predictions.push_back({{name, likely_classes(loaded, output.logits[i], name, top), {}},
                           images > 1 ? parts.of(at::full({1}, i, at::kLong)) : routings});
    Prediction& prediction = predictions.back();
    for (auto& [layer, routing] : prediction.routings)
      if (const Routing& all = routings.at(layer); images > 1 && all.clean_logits.defined())
        routing.clean_logits = all.clean_logits.narrow(0, i * all.layout.per_image, all.layout.per_image);
    for (const Routing& decision : output.routings) {
      const Routing& routing = prediction.routings.at(decision.layer);
      prediction.layers.push_back(layer_experts(routing));
      prediction.layers.back().super_class = routed_super_class(routing, loaded);
    }
  }
  return predictions;
}

Prediction predict(const LoadedModel& loaded, const at::Tensor& image, const std::string& name, int64_t top,
                   const Routings& replay) {
  return predict_batch(loaded, transformed(loaded, image, name).unsqueeze(0), {name}, top, replay).front();
}

}  // namespace sparsight
