#include "sparsight/attacks/run/curve_warnings.h"

#include <cmath>

#include <ATen/TensorOperators.h>

#include "sparsight/core/error.h"
#include "sparsight/eval/statistics.h"

namespace sparsight {
namespace {

constexpr double kSignificant = 0.05;
constexpr double kFewRobust = 0.01;  // of all images, at an epsilon that fools everything

int64_t robust_count(const at::Tensor& robust) { return robust.sum().item<int64_t>(); }

constexpr const char* kTooWeak =
    ", although all smaller perturbations are allowed there: the attack is too weak, or gradients are masked";

}  // namespace

double large_epsilon(Norm norm, int64_t values) {
  const auto sides = static_cast<double>(values);
  return norm == Norm::linf ? 0.5 : 0.5 * (norm == Norm::l2 ? std::sqrt(sides) : sides);
}

std::vector<std::string> curve_warnings(const std::vector<CurveAttack>& attacks, double large, bool targeted) {
  SPARSIGHT_CHECK(attacks.size() >= 2);
  std::vector<std::string> warnings;
  for (size_t i = 1; i < attacks.size(); ++i) {
    const CurveAttack &small = attacks[i - 1], &big = attacks[i];
    const int64_t only_big = robust_count(big.robust & ~small.robust),
                  only_small = robust_count(small.robust & ~big.robust);
    if (only_big <= only_small) continue;
    if (const McNemar test = mcnemar(only_big, only_small); test.p_value < kSignificant)
      warnings.push_back(cat("more images ", targeted ? "withstand" : "are robust at", " epsilon ", big.given, " (",
                             robust_count(big.robust), ") than ", targeted ? "" : "at ", small.given, " (",
                             robust_count(small.robust), ")", kTooWeak));
  }
  const CurveAttack &first = attacks.front(), &last = attacks.back();
  const int64_t robust = robust_count(last.robust);
  if (robust > 0 && robust >= robust_count(first.robust))
    warnings.push_back(cat(targeted ? "the success rate does not rise" : "robust accuracy does not fall",
                           " from epsilon ", first.given, " to ", last.given,
                           ": the attack does not use its room, or gradients are masked"));
  const auto images = static_cast<double>(last.robust.size(0));
  if (!targeted && last.epsilon >= large && last.gradients && static_cast<double>(robust) > kFewRobust * images)
    warnings.push_back(cat(robust, " of ", last.robust.size(0), " images withstand epsilon ", last.given,
                           ", at which every image can be made grey: gradients are masked, or the attack needs more "
                           "steps"));
  return warnings;
}

}  // namespace sparsight
