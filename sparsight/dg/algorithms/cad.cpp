#include "sparsight/dg/algorithms/cad.h"

#include <limits>

#include <ATen/ops/eye.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/nonzero.h>

namespace sparsight {
namespace {

constexpr double kBaseTemperature = 0.07;

class Cad : public DomainAlgorithm {
 public:
  Cad(const CadOptions& options, bool conditional, const AlgorithmContext& context)
      : DomainAlgorithm(context, 2), options_(options), conditional_(conditional) {}

 protected:
  at::Tensor objective(const DomainPass& pass, NamedMeans& log) override {
    const at::Tensor bottleneck =
        cad_loss(pass.output.features, pass.joined.labels, domain_positions(pass.domains), options_, conditional_);
    log_value(log, "bottleneck", bottleneck);
    return pass.risk() + options_.lambda * bottleneck;
  }

 private:
  CadOptions options_;
  bool conditional_;
};

// log sum exp over the entries of each row where `allowed`, of which every row has one: [R].
at::Tensor log_sum_where(const at::Tensor& x, const at::Tensor& allowed) {
  return at::logsumexp(x.masked_fill(allowed.logical_not(), -std::numeric_limits<double>::infinity()), 1);
}

at::Tensor same_pairs(const at::Tensor& numbers) { return numbers.unsqueeze(1).eq(numbers.unsqueeze(0)); }

}  // namespace

void CadOptions::declare(OptionSet& set) {
  set.real("lambda", &lambda, {0, 1e9}, "weight of the bottleneck").search = {"lmbda",
                                                                              "{0.0001,0.001,0.01,0.1,1.0,10.0,100.0}"};
  set.real("temperature", &temperature, {1e-6, 1e6}, "what similarities are divided by (T)").search = {"temperature",
                                                                                                       "{0.05,0.1}"};
  set.flag("normalized", &normalized, "compare features of length 1");
  set.flag("flipped", &flipped, "raise the probability of other domains; else lower that of the same one");
}

std::vector<ProtocolDefault> cad_defaults() {
  return {{kEverySet, "algorithm.normalized", false, "", "is_normalized"},
          {kEverySet, "algorithm.flipped", true, "", "is_flipped"},
          {kEverySet, "", false, "", "is_project"}};
}

at::Tensor cad_loss(const at::Tensor& features, const at::Tensor& labels, const at::Tensor& domains,
                    const CadOptions& options, bool conditional) {
  at::Tensor z = features.to(at::kFloat);
  if (options.normalized) z = z / z.norm(2, {1}, /*keepdim=*/true).clamp_min(1e-12);
  const at::Tensor others = at::eye(z.size(0), at::kBool).logical_not();
  const at::Tensor same_class = same_pairs(labels).logical_and(others), same_domain = same_pairs(domains);
  const at::Tensor candidates = conditional ? same_class : others;
  const at::Tensor wanted = candidates.logical_and(options.flipped ? same_domain.logical_not() : same_domain);
  const at::Tensor counts = wanted.any(1).logical_and(same_class.any(1));
  const at::Tensor rows = at::nonzero(counts).squeeze(1);
  if (rows.numel() == 0) return z.sum() * 0;
  const auto of = [&](const at::Tensor& x) { return x.index_select(0, rows); };
  const at::Tensor similar = at::matmul(of(z), z.t()) / options.temperature;
  const at::Tensor log_share = log_sum_where(similar, of(wanted)) - log_sum_where(similar, of(candidates));
  return (options.flipped ? -1 : 1) * options.temperature / kBaseTemperature * log_share.mean();
}

std::shared_ptr<Algorithm> make_cad(const CadOptions& options, const AlgorithmContext& context) {
  return std::make_shared<Cad>(options, /*conditional=*/false, context);
}

std::shared_ptr<Algorithm> make_cond_cad(const CadOptions& options, const AlgorithmContext& context) {
  return std::make_shared<Cad>(options, /*conditional=*/true, context);
}

}  // namespace sparsight
