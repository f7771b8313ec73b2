#include "sparsight/serve/answer.h"

#include <algorithm>
#include <cmath>

namespace sparsight::serve {
namespace {

// The mean over the image's tokens of the softmax of its router's logits. Daxberger et al. 2023, section 3: expert e is
// for super-class e.
std::vector<double> mean_router_probabilities(const engine::Routing& routing, int64_t first, int64_t rows) {
  const int64_t experts = routing.experts;
  std::vector<double> mean(static_cast<size_t>(experts));
  for (int64_t row = first; row < first + rows; ++row) {
    const float* logits = routing.logits.data() + row * experts;
    const std::vector<double> probabilities = class_probabilities({logits, logits + experts}, /*sigmoid=*/false);
    for (size_t e = 0; e < mean.size(); ++e) mean[e] += probabilities[e] / static_cast<double>(rows);
  }
  return mean;
}

std::optional<RoutedSuperClass> routed_super_class(const engine::ProgramInfo& info, const engine::Routing& routing,
                                                   int64_t image, int64_t images) {
  const std::vector<std::string>& names = info.super_classes;
  if (info.super_class_of.empty() || routing.mixes_tokens() || routing.experts != std::ssize(names)) return {};
  const int64_t rows = routing.experts > 0 ? routing.logits.size() / routing.experts / images : 0;
  if (rows == 0) return {};
  const std::vector<double> mean = mean_router_probabilities(routing, image * rows, rows);
  const int64_t best = std::ranges::max_element(mean) - mean.begin();
  return RoutedSuperClass{best, names[static_cast<size_t>(best)], mean[static_cast<size_t>(best)]};
}

LayerAnswer copy_layer(const engine::Routing& routing, int64_t image, bool with_chosen) {
  LayerAnswer layer{.experts = routing.experts,
                    .layout = routing.layout,
                    .mixes_tokens = routing.mixes_tokens(),
                    .counts = std::vector<int64_t>(static_cast<size_t>(routing.experts))};
  layer.layout.images = 1;
  const int64_t per_image = routing.layout.per_image, first = image * per_image;
  if (with_chosen) layer.chosen.resize(static_cast<size_t>(per_image));
  for (int64_t a = 0; a < routing.assignments(); ++a) {
    const int64_t token = routing.token[a] - first;
    if (token < 0 || token >= per_image || !routing.kept[a]) continue;
    ++layer.counts[static_cast<size_t>(routing.expert[a])];
    if (with_chosen) layer.chosen[static_cast<size_t>(token)].emplace_back(routing.expert[a], routing.gate[a]);
  }
  return layer;
}

}  // namespace

ImageAnswer copy_answer(const engine::Program& program, const engine::Answer& answer, int64_t image, int64_t images,
                        const WantedParts& wanted) {
  ImageAnswer copy;
  const int64_t classes = program.classes(), width = program.feature_width();
  const float* logits = answer.logits + image * classes;
  copy.logits.assign(logits, logits + classes);
  if (!std::ranges::all_of(copy.logits, [](float value) { return std::isfinite(value); })) {
    copy.problem = "the model's output is not finite; its training failed or the image's values are out of range";
    return copy;
  }
  if (wanted.features) copy.features.assign(answer.features + image * width, answer.features + (image + 1) * width);
  for (size_t r = 0; r < answer.routings.size(); ++r) {
    copy.layers.push_back(copy_layer(answer.routings[r], image, wanted.chosen));
    copy.layers.back().layer = program.routes()[r]->layer();
    copy.layers.back().super_class = routed_super_class(program.info, answer.routings[r], image, images);
  }
  return copy;
}

std::vector<double> class_probabilities(const std::vector<float>& logits, bool sigmoid) {
  std::vector<double> values(logits.begin(), logits.end());
  if (sigmoid) {
    for (double& value : values) value = 1 / (1 + std::exp(-value));
    return values;
  }
  const double most = *std::ranges::max_element(values);
  double sum = 0;
  for (double& value : values) sum += value = std::exp(value - most);
  for (double& value : values) value /= sum;
  return values;
}

}  // namespace sparsight::serve
