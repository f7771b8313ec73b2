// The bounds of the theory of patch-level routing: Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts is
// Provably Sample-efficient for Convolutional Neural Networks", theorems 4.2, 4.3 and 4.5, lemma 4.1, appendix M and
// table 1. Constants and logarithms are left out: bounds are products of powers, to be compared with each other, not
// read as sample counts. The conditions are sufficient, not necessary (the paper's footnote 4).
#pragma once

#include <map>
#include <string>

namespace sparsight::pmoe {

// A product of powers of symbols: n patches per image, l patches per expert, k experts, c classes, p sets of irrelevant
// patterns, delta (equation 9), eps (the target error), m neurons, B batch size, d width of a patch, gap = 1 - delta_d.
struct PowerProduct {
  std::map<std::string, double> powers;  // none is 0

  // Raises Error if a symbol has no value, or one that is not above 0.
  double at(const std::map<std::string, double>& values) const;
  std::string text() const;  // "l^8 p^12 delta^6 / eps^16", "1" without symbols
};

PowerProduct operator*(const PowerProduct& a, const PowerProduct& b);
PowerProduct operator/(const PowerProduct& a, const PowerProduct& b);
bool operator==(const PowerProduct& a, const PowerProduct& b);

enum class PmoeTraining { separate, joint, cnn };

// Sufficient to reach the error eps; samples = batch * iterations.
struct PmoeBounds {
  PowerProduct samples, neurons, batch, iterations, learning_rate;
};
PmoeBounds pmoe_bounds(PmoeTraining training);

// The same for c classes (appendix M). The paper gives no learning rate for them; the binary one is returned. Raises
// UsageError for the CNN, for which there is no such theorem.
PmoeBounds pmoe_bounds_of_classes(PmoeTraining training);

// Training the routers of separate training (lemma 4.1).
PmoeBounds router_bounds();
// Samples to train them with c classes, c² n² / (1 - delta_d)² as printed; the gap's exponent 2 disagrees with the 3 of
// lemma 4.1.
PowerProduct router_samples_of_classes();

// Ratio of the CNN's bound to pMoE's, for samples and neurons. Differs from the paper: for neurons of joint training
// this is n^8 / (k^3 l^6), which follows from its theorems; its text prints n^10 / (k^3 l^6).
struct PmoeSavings {
  PowerProduct samples, neurons;
};
PmoeSavings pmoe_savings(PmoeTraining training);

// The error at a fixed number of samples, without factors that do not depend on n, l or k: k^(1/4) l^(3/8) for joint
// training.
PowerProduct error_at_fixed_samples(PmoeTraining training);

// Table 1: multiply-adds per iteration, number of iterations, and total multiply-adds. routers_...: what routing adds
// to an iteration of joint training, k n d forward and k l² d backward (both per sample of the batch).
struct PmoeCompute {
  PowerProduct per_iteration, iterations, total, routers_forward, routers_backward;
};
PmoeCompute pmoe_compute(PmoeTraining training);

}  // namespace sparsight::pmoe
