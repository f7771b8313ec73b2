#include "sparsight/data/transforms/fit_to_data.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <nlohmann/json.hpp>

#include "sparsight/data/transforms/normalize.h"

namespace sparsight {
namespace {

constexpr int64_t kPhotographCrop = 224, kPhotographSide = 256;

double compute_mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void fit_size(Json& step, const DataInfo& info) {
  const int64_t side = std::min(info.height, info.width);  // 0 if sizes vary
  const Json size = step.value("size", Json());
  if (size == 0) step["size"] = side > 0 ? side : kPhotographCrop;
  if (size == Json::array({0})) step["size"] = Json::array({side > 0 ? side : kPhotographSide});
}

void fit_channels(Json& step) {
  if (step.value("preset", Json()) == "imagenet") {
    NormalizeOptions options;
    options.preset = "imagenet";
    const PixelStatistics colours = pixel_statistics(options);
    step.erase("preset");
    step["mean"] = Json::array({compute_mean(colours.mean)});
    step["std"] = Json::array({compute_mean(colours.std)});
  }
  const Json fill = step.value("fill_color", Json());
  if (fill.is_array() && fill.size() == 3 && std::ranges::all_of(fill, [](const Json& v) { return v.is_number(); }))
    step["fill_color"] = Json::array({std::llround(compute_mean(fill.get<std::vector<double>>()))});
}

}  // namespace

Json fit_to_data(Json steps, const DataInfo& info) {
  for (Json& step : steps) {
    fit_size(step, info);
    if (info.channels == 1) fit_channels(step);
  }
  return steps;
}

}  // namespace sparsight
