// How far apart the features of two domains are (item G26). Letters: moe/axes.md; a: [N,D], b: [M,D].
#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight {

using FeatureDistance = std::function<at::Tensor(const at::Tensor& a, const at::Tensor& b)>;

// Sun and Saenko 2016, "Deep CORAL", with the difference of means that DomainBed adds: mean over dimensions of
// (mean_a - mean_b)² plus mean over entries of (Cov_a - Cov_b)², with covariances that divide by N - 1. Raises Error
// for a domain of one image. [].
at::Tensor coral_distance(const at::Tensor& a, const at::Tensor& b);

// Squared maximum mean discrepancy (Gretton et al. 2012; Li et al. 2018, "Domain Generalization with Adversarial
// Feature Learning"): mean K(a,a) + mean K(b,b) - 2 mean K(a,b), K(x,y) = sum over widths g of exp(-g |x - y|²). [].
at::Tensor mmd_distance(const at::Tensor& a, const at::Tensor& b, const std::vector<double>& widths);
// The kernel widths are 1e-3, 1e-2, ..., 1e3.
at::Tensor mmd_distance(const at::Tensor& a, const at::Tensor& b);

// The mean over all pairs of domains; 0 for one domain.
at::Tensor mean_pair_distance(const std::vector<at::Tensor>& features, const FeatureDistance& distance);

}  // namespace sparsight
