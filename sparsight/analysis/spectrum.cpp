#include "sparsight/analysis/spectrum.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/hypot.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/matmul.h>

#include "sparsight/core/error.h"

namespace sparsight {

std::vector<double> relative_log_amplitudes(const at::Tensor& maps) {
  constexpr double kSmallest = 1e-6, kPi = 3.14159265358979324;
  if (maps.dim() != 4 || maps.size(2) != maps.size(3) || maps.size(2) < 2 || maps.numel() == 0 ||
      !maps.is_floating_point())
    fail("the spectrum is of feature maps [B,C,S,S] with S of at least 2, got ", maps.sizes());
  if (!maps.isfinite().all().item<bool>()) fail("the feature maps are not finite, so they have no spectrum");
  const int64_t side = maps.size(2), frequencies = side / 2 + 1;
  // The phases of F(k,k) in units of a turn, k (y + x) / S, exactly reduced before they are multiplied by 2 pi.
  const at::Tensor along = at::arange(side, at::kLong);
  const at::Tensor sums = (along.unsqueeze(1) + along).reshape({-1, 1});                 // [S*S,1]
  const at::Tensor turns = (sums * at::arange(frequencies, at::kLong)).remainder(side);  // [S*S,K]
  const at::Tensor phase = turns.to(at::kDouble) * (2 * kPi / static_cast<double>(side));
  const at::Tensor rows = maps.detach().to(at::kCPU, at::kDouble).reshape({-1, side * side});
  const at::Tensor amplitude = at::hypot(at::matmul(rows, phase.cos()), at::matmul(rows, phase.sin()));
  const at::Tensor logs = (amplitude + kSmallest).log().mean(0).contiguous();
  const double* const values = logs.const_data_ptr<double>();
  std::vector<double> relative;
  for (int64_t k = 0; k < frequencies; ++k) relative.push_back(values[k] - values[0]);
  return relative;
}

double high_frequency_amplitude(const at::Tensor& maps) { return relative_log_amplitudes(maps).back(); }

}  // namespace sparsight
