#include "sparsight/data/transforms/normalize.h"

#include <algorithm>
#include <map>

#include <ATen/ops/tensor.h>

#include "sparsight/data/transforms/to_float.h"

namespace sparsight {
namespace {

// Means and standard deviations of the training sets, in 0..1.
const std::map<std::string, PixelStatistics>& presets() {
  static const std::map<std::string, PixelStatistics> table{
      {"imagenet", {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}}},
      {"mnist", {{0.1307}, {0.3081}}},
      {"cifar10", {{0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616}}},
      {"cifar100", {{0.5071, 0.4865, 0.4409}, {0.2673, 0.2564, 0.2762}}},
      {"half", {{0.5}, {0.5}}},
  };
  return table;
}

// [C,1,1] fp32, or [1,1,1]
at::Tensor of_channels(const std::vector<double>& values) {
  return at::tensor(values, at::kFloat).view({std::ssize(values), 1, 1});
}

bool same(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() == b.size() || a.empty() || b.empty()) return a == b;
  const std::vector<double>&one = a.size() < b.size() ? a : b, &all = a.size() < b.size() ? b : a;
  return one.size() == 1 && std::ranges::all_of(all, [&](double value) { return value == one[0]; });
}

std::string values_text(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += cat(text.empty() ? "" : ", ", value);
  return "[" + text + "]";
}

}  // namespace

std::string to_text(const PixelStatistics& statistics) {
  return statistics.empty() ? "none"
                            : "mean " + values_text(statistics.mean) + " and std " + values_text(statistics.std);
}

bool operator==(const PixelStatistics& a, const PixelStatistics& b) {
  return same(a.mean, b.mean) && same(a.std, b.std);
}

void NormalizeOptions::declare(OptionSet& set) {
  std::vector<std::string> names{"none"};
  for (const auto& [name, statistics] : presets()) names.push_back(name);
  set.choice("preset", &preset, names, "mean and deviation of a known dataset; none takes those given here");
  set.floats("mean", &mean, {-10, 10}, "mean per channel, or one for all, of values in 0..1");
  set.floats("std", &std, {1e-6, 1e6}, "standard deviation per channel, or one for all");
}

PixelStatistics pixel_statistics(const NormalizeOptions& options) {
  PixelStatistics statistics{options.mean, options.std};
  if (options.preset != "none") {
    if (!options.mean.empty() || !options.std.empty())
      fail_usage("normalize takes a preset, or mean and std, not both");
    statistics = presets().at(options.preset);
  }
  if (statistics.mean.empty() || statistics.mean.size() != statistics.std.size())
    fail_usage("normalize needs mean and std of equal length, got ", statistics.mean.size(), " and ",
               statistics.std.size(), " values");
  return statistics;
}

void check_channels(const PixelStatistics& statistics, int64_t channels) {
  if (statistics.mean.size() > 1 && std::ssize(statistics.mean) != channels)
    fail_usage("normalize has ", statistics.mean.size(), " means, but the images have ", channels, " channels");
}

TransformOp make_normalize(const NormalizeOptions& options) {
  const PixelStatistics statistics = pixel_statistics(options);
  const at::Tensor mean = of_channels(statistics.mean), std = of_channels(statistics.std);
  std::vector<float> scale, shift;
  for (size_t i = 0; i < statistics.mean.size(); ++i) {
    scale.push_back(static_cast<float>(1 / (255 * statistics.std[i])));
    shift.push_back(static_cast<float>(-statistics.mean[i] / statistics.std[i]));
  }
  return [=](const at::Tensor& image, RandomStream&) {
    check_channels(statistics, image.size(0));
    if (image.scalar_type() != at::kByte) return image.to(at::kFloat).sub(mean).div_(std);
    return scale_bytes(image, scale, shift);
  };
}

TransformOp make_denormalize(const PixelStatistics& statistics) {
  const at::Tensor mean = of_channels(statistics.mean), std = of_channels(statistics.std);
  return [=](const at::Tensor& image, RandomStream&) { return image.mul(std).add_(mean); };
}

}  // namespace sparsight
