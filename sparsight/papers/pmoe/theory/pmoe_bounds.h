// What the theory of patch-level routing asks for: Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts is
// Provably Sample-efficient for Convolutional Neural Networks", theorems 4.2, 4.3 and 4.5, lemma 4.1, appendix M and
// table 1. Constants and logarithms are left out: bounds are products of powers, to be compared with each other and not
// to be taken as numbers of samples. They are sufficient, not necessary (the paper's footnote 4).
#pragma once

#include <map>
#include <string>

namespace sparsight::pmoe {

// A product of powers of symbols: n patches an image, l of them an expert, k experts, c classes, p sets of irrelevant
// patterns, delta (equation 9), eps (the error to be reached), m neurons, B samples a batch, d numbers a patch, gap =
// 1 - delta_d.
struct PowerProduct {
  std::map<std::string, double> powers;  // none is 0

  // Raises Error for a symbol that has no value, or one that is not above 0.
  double at(const std::map<std::string, double>& values) const;
  std::string text() const;  // "l^8 p^12 delta^6 / eps^16", "1" without symbols
};

PowerProduct operator*(const PowerProduct& a, const PowerProduct& b);
PowerProduct operator/(const PowerProduct& a, const PowerProduct& b);
bool operator==(const PowerProduct& a, const PowerProduct& b);

enum class PmoeTraining { separate, joint, cnn };

// What is enough to reach the error eps; samples = batch * iterations.
struct PmoeBounds {
  PowerProduct samples, neurons, batch, iterations, learning_rate;
};
PmoeBounds pmoe_bounds(PmoeTraining training);

// The same for c classes. The learning rate is not given there, and that of binary classification is returned. There is
// no such theorem about the CNN: raises UsageError.
PmoeBounds pmoe_bounds_of_classes(PmoeTraining training);

// Training the routers of separate training (lemma 4.1).
PmoeBounds router_bounds();
// Samples for them with c classes as the paper prints them, c² n² / (1 - delta_d)²; the exponent 2 of the gap disagrees
// with the 3 of lemma 4.1.
PowerProduct router_samples_of_classes();

// By what pMoE needs less than the CNN: samples and neurons. Neurons of joint training: n^8 / (k^3 l^6), which follows
// from the theorem; the paper's text prints n^10 / (k^3 l^6).
struct PmoeSavings {
  PowerProduct samples, neurons;
};
PmoeSavings pmoe_savings(PmoeTraining training);

// The error that a fixed number of samples reaches, up to what does not depend on n, l and k: k^(1/4) l^(3/8) for joint
// training.
PowerProduct error_at_fixed_samples(PmoeTraining training);

// Table 1: multiply-adds of one iteration, of all of them, and of the iterations' number. `routers` is what routing
// adds to an iteration of joint training: forward k n d, backward k l² d (both for each sample of the batch).
struct PmoeCompute {
  PowerProduct per_iteration, iterations, total, routers_forward, routers_backward;
};
PmoeCompute pmoe_compute(PmoeTraining training);

}  // namespace sparsight::pmoe
