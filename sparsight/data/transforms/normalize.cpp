#include "sparsight/data/transforms/normalize.h"

#include <map>

#include <ATen/ops/tensor.h>

#include "sparsight/data/transforms/to_float.h"

namespace sparsight {
namespace {

struct Statistics {
  std::vector<double> mean, std;
};

// Means and deviations of the training sets, in 0..1.
const std::map<std::string, Statistics>& presets() {
  static const std::map<std::string, Statistics> table{
      {"imagenet", {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}}},
      {"mnist", {{0.1307}, {0.3081}}},
      {"cifar10", {{0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616}}},
      {"cifar100", {{0.5071, 0.4865, 0.4409}, {0.2673, 0.2564, 0.2762}}},
      {"half", {{0.5}, {0.5}}},
  };
  return table;
}

}  // namespace

void NormalizeOptions::declare(OptionSet& set) {
  std::vector<std::string> names{"none"};
  for (const auto& [name, statistics] : presets()) names.push_back(name);
  set.choice("preset", &preset, names, "mean and deviation of a known data set; none takes those given here");
  set.reals("mean", &mean, {-10, 10}, "mean per channel, or one for all, of values in 0..1");
  set.reals("std", &std, {1e-6, 1e6}, "standard deviation per channel, or one for all");
}

TransformOp make_normalize(const NormalizeOptions& options) {
  Statistics statistics{options.mean, options.std};
  if (options.preset != "none") {
    if (!options.mean.empty() || !options.std.empty())
      fail_usage("normalize takes a preset, or mean and std, not both");
    statistics = presets().at(options.preset);
  }
  if (statistics.mean.empty() || statistics.mean.size() != statistics.std.size())
    fail_usage("normalize needs mean and std of equal length, got ", statistics.mean.size(), " and ",
               statistics.std.size(), " values");
  const int64_t values = std::ssize(statistics.mean);
  const at::Tensor mean = at::tensor(statistics.mean, at::kFloat).view({values, 1, 1});
  const at::Tensor std = at::tensor(statistics.std, at::kFloat).view({values, 1, 1});
  std::vector<float> scale, shift;
  for (size_t i = 0; i < statistics.mean.size(); ++i) {
    scale.push_back(static_cast<float>(1 / (255 * statistics.std[i])));
    shift.push_back(static_cast<float>(-statistics.mean[i] / statistics.std[i]));
  }
  return [=](const at::Tensor& image, RandomStream&) {
    if (values != 1 && values != image.size(0))
      fail_usage("normalize has ", values, " means, but the images have ", image.size(0), " channels");
    if (image.scalar_type() != at::kByte) return image.sub(mean).div_(std);
    return scale_bytes(image, scale, shift);
  };
}

}  // namespace sparsight
