#include "sparsight/dg/algorithms/eqrm.h"

#include <cmath>

#include <ATen/ops/special_ndtr.h>

#include "sparsight/dg/algorithms/anneal.h"

namespace sparsight {
namespace {

constexpr double kLeastDeviation = 1e-12;

double distribution(const at::Tensor& risks, double bandwidth, double at_risk) {
  return at::special_ndtr((at_risk - risks) / bandwidth).mean().item<double>();
}

// The risks are detached and fp64.
double find_quantile(const at::Tensor& risks, double bandwidth, double quantile) {
  constexpr double kFar = 9;  // bandwidths, beyond which the normal distribution is 0 or 1
  double low = risks.min().item<double>() - kFar * bandwidth, high = risks.max().item<double>() + kFar * bandwidth;
  for (int i = 0; i < 200 && low < high; ++i) {
    const double middle = (low + high) / 2;
    (distribution(risks, bandwidth, middle) < quantile ? low : high) = middle;
    if (middle == (low + high) / 2) break;
  }
  return (low + high) / 2;
}

class Eqrm : public DomainAlgorithm {
 public:
  Eqrm(const EqrmOptions& options, const AlgorithmContext& context)
      : DomainAlgorithm(context, 2), options_(options), anneal_{static_cast<int64_t>(std::ceil(options.burn_in))} {}

 protected:
  void begin(const UpdateContext& update) override {
    anneal_.reset(update, weights());
    if (options_.lr > 0 && anneal_.begun(update)) weights().set_base_lr(options_.lr);
  }
  at::Tensor objective(const DomainPass& pass, NamedMeans&) override {
    const at::Tensor risks = pass.risks();
    return anneal_.begun(pass.update) ? risk_quantile(risks, options_.quantile) : risks.mean();
  }

 private:
  EqrmOptions options_;
  Anneal anneal_;
};

}  // namespace

void EqrmOptions::declare(OptionSet& set) {
  set.real("quantile", &quantile, {1e-6, 1 - 1e-6}, "which quantile of the domains' risks is minimised (alpha)")
      .search = {"eqrm_quantile", "U(0.5,0.99)"};
  set.real("burn_in", &burn_in, {0, 1e9}, "updates that minimise the mean risk before, rounded up").search = {
      "eqrm_burnin_iters", "10^U(2.5,3.5)"};
  set.real("lr", &lr, {0, 1e6}, "base learning rate after them; 0: that of [optimizer]").search = {"eqrm_lr",
                                                                                                   "10^U(-7,-5)"};
}

at::Tensor risk_quantile(const at::Tensor& risks, double quantile) {
  const at::Tensor fixed = risks.detach().to(at::kDouble);
  const double factor = 1.06 * std::pow(static_cast<double>(risks.size(0)), -0.2);
  const double bandwidth = factor * fixed.std(/*unbiased=*/true).item<double>();
  if (!(bandwidth > kLeastDeviation)) return risks.mean();
  const double q = find_quantile(fixed, bandwidth, quantile);
  const double density =
      (-((q - fixed) / bandwidth).square() / 2).exp().mean().item<double>() / (bandwidth * std::sqrt(2 * M_PI));
  // A Newton step of length 0 has the gradient of the solution.
  const at::Tensor f = at::special_ndtr((q - risks) / (factor * risks.std(/*unbiased=*/true))).mean();
  return q - (f - f.detach()) / density;
}

std::shared_ptr<Algorithm> make_eqrm(const EqrmOptions& options, const AlgorithmContext& context) {
  return std::make_shared<Eqrm>(options, context);
}

}  // namespace sparsight
