#include "sparsight/papers/robust_moe/theory/fixed_routing.h"

#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/zeros_like.h>

#include "sparsight/core/error.h"

namespace sparsight::robust_moe {
namespace {

void check_routed(const RoutedData& data) {
  if (data.inputs.empty() || data.inputs.size() != data.targets.size())
    fail_usage("fixed routing needs the inputs and targets of at least 1 expert, got ", data.inputs.size(), " and ",
               data.targets.size());
  for (size_t i = 0; i < data.inputs.size(); ++i) {
    const at::Tensor &x = data.inputs[i], &y = data.targets[i];
    if (x.dim() != 2 || y.dim() != 1 || x.size(0) != y.size(0) || x.size(1) != data.inputs[0].size(1))
      fail_usage("expert ", i, " has inputs of size ", x.sizes(), " and targets of size ", y.sizes(),
                 "; fixed routing needs [N_i,D] with the same D for all experts, and [N_i]");
    if (x.scalar_type() != at::kDouble || y.scalar_type() != at::kDouble)
      fail_usage("expert ", i, " has inputs or targets that are not float64; convert them with .to(at::kDouble)");
    if (!x.isfinite().all().item<bool>() || !y.isfinite().all().item<bool>())
      fail_usage("expert ", i, " has inputs or targets that are not finite; remove those samples");
  }
}

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  const double size = std::max(a.abs().max().item<double>(), b.abs().max().item<double>());
  return size > 0 ? (a - b).abs().max().item<double>() / size : 0;
}

}  // namespace

at::Tensor RoutedData::all_inputs() const { return at::cat(inputs); }
at::Tensor RoutedData::all_targets() const { return at::cat(targets); }

GramInverse gram_inverse(const at::Tensor& inputs, double zero) {
  if (inputs.size(0) == 0) {
    const int64_t width = inputs.size(1);
    return {inputs.new_zeros({width, width}), inputs.new_zeros({width, 0}), inputs.new_zeros({0})};
  }
  // From X itself: the eigenvalues of the product X^T X would have lost half of the digits.
  const auto [left, singular, right] = at::linalg_svd(inputs, false);
  const at::Tensor eigenvalues = singular.square();
  const int64_t rank = (eigenvalues > zero).sum().item<int64_t>();
  GramInverse inverse;
  inverse.basis = right.narrow(0, 0, rank).t().contiguous();
  inverse.eigenvalues = eigenvalues.narrow(0, 0, rank);
  inverse.matrix = (inverse.basis / inverse.eigenvalues).matmul(inverse.basis.t());
  return inverse;
}

FixedRouting fit_fixed_routing(const RoutedData& data, double tolerance) {
  check_routed(data);
  const at::Tensor inputs = data.all_inputs();
  FixedRouting fit;
  const GramInverse all = gram_inverse(inputs, 0);
  if (all.eigenvalues.numel() > 0) fit.zero = tolerance * all.eigenvalues[0].item<double>();
  fit.dense = gram_inverse(inputs, fit.zero);
  fit.weights = fit.dense.matrix.matmul(inputs.t().matmul(data.all_targets()));
  for (size_t i = 0; i < data.inputs.size(); ++i) {
    fit.experts.push_back(gram_inverse(data.inputs[i], fit.zero));
    fit.expert_weights.push_back(fit.experts[i].matrix.matmul(data.inputs[i].t().matmul(data.targets[i])));
  }
  return fit;
}

std::vector<double> FixedRouting::expert_norms() const {
  std::vector<double> norms;
  for (const at::Tensor& each : expert_weights) norms.push_back(each.norm().item<double>());
  return norms;
}

double FixedRouting::norm() const { return weights.norm().item<double>(); }

RoutingIdentities check_identities(const RoutedData& data, const FixedRouting& fit) {
  const at::Tensor inputs = data.all_inputs(), gram = inputs.t().matmul(inputs),
                   products = inputs.t().matmul(data.all_targets());
  at::Tensor grams = at::zeros_like(gram), sums = at::zeros_like(products), weighted = at::zeros_like(products);
  for (size_t i = 0; i < data.inputs.size(); ++i) {
    const at::Tensor own = data.inputs[i].t().matmul(data.inputs[i]);
    grams += own;
    sums += data.inputs[i].t().matmul(data.targets[i]);
    weighted += own.matmul(fit.expert_weights[i]);
  }
  return {relative_difference(gram, grams), relative_difference(products, sums),
          relative_difference(fit.weights, fit.dense.matrix.matmul(weighted))};
}

NormRatios norm_ratios(const FixedRouting& fit) {
  const double dense = fit.norm();
  if (dense == 0) fail("the dense model has weight 0; ratios to it are undefined");
  NormRatios ratios;
  for (const double norm : fit.expert_norms()) {
    ratios.rms += norm * norm;
    ratios.largest = std::max(ratios.largest, norm / dense);
  }
  ratios.rms = std::sqrt(ratios.rms / static_cast<double>(fit.experts.size())) / dense;
  return ratios;
}

}  // namespace sparsight::robust_moe
