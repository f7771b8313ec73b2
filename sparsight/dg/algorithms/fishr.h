// Fishr (Rame et al. 2022, "Fishr: Invariant Gradient Variances for Out-of-Distribution Generalization", equation 4):
//
//   CE + lambda_t mean_e |v_e - mean_e v_e|²
//
// v_e: per parameter of the linear head, the variance (mean of centred squares) over the images of domain e of the
// gradient of their cross entropy, then its exponential running mean ema old + (1 - ema) new, divided by 1 - ema so
// that gradients do not shrink with ema; old values carry none. |.|² is the mean over the head's parameters, as in the
// authors' code, for which lambda = 1000 is meant. lambda_t is 0 before the anneal step.
//
// The gradients per image have a closed form: (p - y) outer features, and p - y for the bias. Of their products only
// means are needed, so that no [B,K,D] tensor is made.
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"

namespace sparsight {

struct FishrOptions {
  double lambda = 1000;
  int64_t anneal = 1500;
  double ema = 0.95;
  void declare(OptionSet& set);
};

// The variances of the gradients per image of a linear head. logits: [B,K], features: [B,D]. Returns [K*D + K], weights
// first; without the bias's [K] if has_bias is false; for models with logits (0, f), the head has K = 1.
struct FishrHead {
  bool has_bias = true;
  bool one_output = false;  // logits (0, f)
};
at::Tensor gradient_variances(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& features,
                              const FishrHead& head);
// variances: [E,P]. The penalty without lambda, [].
at::Tensor fishr_penalty(const at::Tensor& variances);

std::shared_ptr<Algorithm> make_fishr(const FishrOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
