#include "sparsight/papers/pmoe/theory/pmoe_bounds.h"

#include <cmath>

#include "sparsight/core/error.h"

namespace sparsight::pmoe {
namespace {

PowerProduct power(const std::string& symbol, double exponent) {
  return exponent == 0 ? PowerProduct{} : PowerProduct{{{symbol, exponent}}};
}

PowerProduct combined(PowerProduct a, const PowerProduct& b, double sign) {
  for (const auto& [symbol, exponent] : b.powers) {
    double& sum = a.powers[symbol];
    sum += sign * exponent;
    if (sum == 0) a.powers.erase(symbol);
  }
  return a;
}

std::string powers_text(const PowerProduct& product, double sign) {
  std::string text;
  for (const auto& [symbol, exponent] : product.powers) {
    if (exponent * sign <= 0) continue;
    text += (text.empty() ? "" : " ") + symbol;
    if (std::abs(exponent) != 1) text += cat("^", std::abs(exponent));
  }
  return text;
}

// p^(6 times) delta^(3 times) / eps^(8 times): the factor that all models share.
PowerProduct hardness(double times) {
  return power("p", 6 * times) * power("delta", 3 * times) / power("eps", 8 * times);
}

}  // namespace

double PowerProduct::at(const std::map<std::string, double>& values) const {
  double product = 1;
  for (const auto& [symbol, exponent] : powers) {
    const auto found = values.find(symbol);
    if (found == values.end()) fail("the bound ", text(), " needs a value of ", symbol);
    if (!(found->second > 0)) fail("the bound ", text(), " needs ", symbol, " above 0, got ", found->second);
    product *= std::pow(found->second, exponent);
  }
  return product;
}

std::string PowerProduct::text() const {
  const std::string above = powers_text(*this, 1), below = powers_text(*this, -1);
  return (above.empty() ? "1" : above) + (below.empty() ? "" : " / " + below);
}

PowerProduct operator*(const PowerProduct& a, const PowerProduct& b) { return combined(a, b, 1); }
PowerProduct operator/(const PowerProduct& a, const PowerProduct& b) { return combined(a, b, -1); }
bool operator==(const PowerProduct& a, const PowerProduct& b) { return a.powers == b.powers; }

PmoeBounds pmoe_bounds(PmoeTraining training) {
  const PowerProduct step = power("eps", 4) / (power("m", 1) * power("p", 3) * power("delta", 1.5));
  if (training == PmoeTraining::joint)
    return {power("k", 4) * power("l", 6) * hardness(2), power("k", 3) * power("n", 2) * power("l", 6) * hardness(2),
            power("k", 2) * power("l", 4) * hardness(1), power("k", 2) * power("l", 2) * hardness(1),
            step * power("l", 1) / power("k", 2)};
  const std::string patches = training == PmoeTraining::separate ? "l" : "n";
  return {power(patches, 8) * hardness(2), power(patches, 10) * hardness(2), power(patches, 4) * hardness(1),
          power(patches, 4) * hardness(1), step / power(patches, 2)};
}

PmoeBounds pmoe_bounds_of_classes(PmoeTraining training) {
  if (training == PmoeTraining::cnn)
    fail_usage("the paper has no multi-class bound for the CNN; use \"separate\" or \"joint\"");
  PmoeBounds bounds = pmoe_bounds(training);
  const bool separate = training == PmoeTraining::separate;
  bounds.samples = bounds.samples * power("c", separate ? 12 : 8);
  bounds.neurons = bounds.neurons * power("c", separate ? 11 : 8);
  bounds.batch = bounds.batch * power("c", separate ? 6 : 4);
  bounds.iterations = bounds.iterations * power("c", separate ? 6 : 4);
  return bounds;
}

PmoeBounds router_bounds() {
  const PowerProduct batch = power("n", 2) / power("gap", 2), iterations = power("gap", -1);
  return {batch * iterations, {}, batch, iterations, power("n", -1)};
}

PowerProduct router_samples_of_classes() { return power("c", 2) * power("n", 2) / power("gap", 2); }

PmoeSavings pmoe_savings(PmoeTraining training) {
  const PmoeBounds cnn = pmoe_bounds(PmoeTraining::cnn), own = pmoe_bounds(training);
  return {cnn.samples / own.samples, cnn.neurons / own.neurons};
}

PowerProduct error_at_fixed_samples(PmoeTraining training) {
  PowerProduct error;
  const PowerProduct samples = pmoe_bounds(training).samples;  // ... / eps^16
  for (const char* symbol : {"k", "l", "n"})
    if (const auto found = samples.powers.find(symbol); found != samples.powers.end())
      error = error * power(symbol, found->second / 16);
  return error;
}

PmoeCompute pmoe_compute(PmoeTraining training) {
  const PowerProduct rows = power("B", 1) * power("d", 1);
  PmoeCompute compute;
  if (training == PmoeTraining::joint) {
    compute.per_iteration = rows * power("m", 1) * power("l", 1);
    compute.iterations = power("k", 2) * power("l", 2) / power("eps", 8);
    compute.routers_forward = rows * power("k", 1) * power("n", 1);
    compute.routers_backward = rows * power("k", 1) * power("l", 2);
  } else {
    const std::string patches = training == PmoeTraining::separate ? "l" : "n";
    compute.per_iteration = rows * power("m", 1) * power(patches, 1);
    compute.iterations = power(patches, 4) / power("eps", 8);
  }
  compute.total = compute.per_iteration * compute.iterations;
  return compute;
}

}  // namespace sparsight::pmoe
