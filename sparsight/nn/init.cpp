#include "sparsight/nn/init.h"

#include <cmath>

#include "sparsight/ops/random_fill.h"

namespace sparsight {
namespace {

// Fills on the CPU in fp32 or fp64: the same values on every device and for every parameter type.
template <class Fill>
void init_copy(at::Tensor& parameter, const Fill& fill) {
  const torch::NoGradGuard no_grad;
  at::Tensor values =
      torch::empty(parameter.sizes(), parameter.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat);
  fill(values);
  parameter.copy_(values);
}

}  // namespace

RandomStream InitRandom::stream(const std::string& parameter) const {
  return RandomStream(seed, "init/" + (path.empty() ? parameter : path + "." + parameter));
}

void initialize(torch::nn::Module& model, uint64_t seed) {
  // The root separately: named_modules() can include it only if a shared pointer owns it.
  if (auto* root = dynamic_cast<Initialized*>(&model)) root->initialize({seed, ""});
  for (const auto& item : model.named_modules("", /*include_self=*/false))
    if (auto* module = dynamic_cast<Initialized*>(item.value().get())) module->initialize({seed, item.key()});
}

void init_normal(at::Tensor& parameter, double std, const RandomStream& stream) {
  init_copy(parameter, [&](at::Tensor& values) { fill_normal(values, stream, 0, std); });
}

// By the inverse of the distribution function, as timm's trunc_normal_tf_ does.
void init_trunc_normal(at::Tensor& parameter, double std, const RandomStream& stream) {
  static const double bound = std::erf(std::sqrt(2.0));  // the probability of ± 2 std
  init_copy(parameter, [&](at::Tensor& values) {
    fill_uniform(values, stream, -bound, bound);
    values.erfinv_().mul_(std * std::sqrt(2.0)).clamp_(-2 * std, 2 * std);
  });
}

void init_uniform(at::Tensor& parameter, double bound, const RandomStream& stream) {
  init_copy(parameter, [&](at::Tensor& values) { fill_uniform(values, stream, -bound, bound); });
}

}  // namespace sparsight
