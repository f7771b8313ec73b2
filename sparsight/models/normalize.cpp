#include "sparsight/models/normalize.h"

#include <cmath>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

at::Tensor for_channels(const std::vector<double>& values, int64_t channels) {
  return torch::tensor(values, torch::kDouble).expand({channels}).clone();
}

std::vector<double> to_doubles(const at::Tensor& tensor) {
  const at::Tensor values = tensor.to(at::kCPU, at::kDouble).contiguous();
  return {values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel()};
}

void check(const PixelStatistics& statistics, int64_t channels) {
  if (statistics.mean.empty() || statistics.mean.size() != statistics.std.size())
    fail_usage("normalize needs mean and std of equal length, got ", statistics.mean.size(), " and ",
               statistics.std.size(), " values");
  check_channels(statistics, channels);
  for (const double mean : statistics.mean)
    if (!std::isfinite(mean)) fail_usage("normalize needs finite means, got ", to_text(statistics));
  for (const double std : statistics.std)
    if (!std::isfinite(std) || std <= 0) fail_usage("normalize needs std above 0, got ", to_text(statistics));
}

}  // namespace

Normalize::Normalize(const PixelStatistics& statistics, int64_t channels) {
  check(statistics, channels);
  mean_ = register_buffer("mean", for_channels(statistics.mean, channels));
  std_ = register_buffer("std", for_channels(statistics.std, channels));
}

// Computed as 255 x / (255 std) - mean / std, with the two factors rounded once. For a byte image 255 x is the byte
// itself, so the result has the same bits as normalising bytes, which is how models saved before this module were
// trained. The first operation is out of place, so that the caller's images are unchanged.
at::Tensor Normalize::forward(const at::Tensor& images) const {
  const at::ScalarType type = images.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor std = std_.to(at::kDouble).view({-1, 1, 1}), mean = mean_.to(at::kDouble).view({-1, 1, 1});
  const at::Tensor scale = (255 * std).reciprocal().to(type), shift = (-mean / std).to(type);
  return images.to(type).mul(255).mul_(scale).add_(shift).to(images.scalar_type());
}

PixelStatistics Normalize::statistics() const { return {to_doubles(mean_), to_doubles(std_)}; }

void Normalize::set(const PixelStatistics& statistics) {
  check(statistics, mean_.size(0));
  const torch::NoGradGuard no_grad;
  mean_.copy_(for_channels(statistics.mean, mean_.size(0)));
  std_.copy_(for_channels(statistics.std, std_.size(0)));
}

bool is_pixel_statistics(const std::string& name) { return name == "normalize.mean" || name == "normalize.std"; }

PixelStatistics find_pixel_statistics(const NamedTensors& tensors) {
  const auto values = [&](const std::string& name) {
    for (const auto& [key, tensor] : tensors)
      if (key == name) return to_doubles(tensor.flatten());
    return std::vector<double>();
  };
  return {values("normalize.mean"), values("normalize.std")};
}

}  // namespace sparsight
