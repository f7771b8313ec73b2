// Style-agnostic networks (Nam et al. 2021, "Reducing Domain Gap by Reducing Style Bias", algorithm 1; on feature
// vectors as in DomainBed). A feature vector's style are its mean m and variance v over dimensions (which divides by
// D - 1), its content is (x - m) / sqrt(v + 1e-5). Each update has three steps:
//
//   1. the model on CE(head(style-randomised features)): own content, statistics alpha own + (1 - alpha) of another
//   2. a linear style network s on CE(s(content-randomised features)): content of another, detached, own statistics
//   3. the model below the head on w mean(-log softmax(s(content-randomised features)))
//
// with alpha ~ U(0,1) per image, and others by a random permutation of the batch. The model passes the images before
// each step.
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"

namespace sparsight {

struct SagNetOptions {
  double adversary = 0.1;
  void declare(OptionSet& set);
};

// features: [B,D]. alpha: [B,1], others: [B] int64.
at::Tensor with_random_style(const at::Tensor& features, const at::Tensor& alpha, const at::Tensor& others);
at::Tensor with_random_content(const at::Tensor& features, const at::Tensor& others);

std::shared_ptr<Algorithm> make_sagnet(const SagNetOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
