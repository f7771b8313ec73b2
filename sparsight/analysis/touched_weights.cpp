#include "sparsight/analysis/touched_weights.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>

#include <nlohmann/json.hpp>

#include "sparsight/analysis/distinct_experts.h"

namespace sparsight {
namespace {

constexpr int64_t kBytesPerWeight = 4;  // of a weight in fp32

}  // namespace

void TouchedWeights::add(const ModelOutput& output, int64_t images) {
  if (weights_.empty() || images == 0) return;
  at::Tensor touched = at::full({images}, weights_.other, at::kLong);
  const auto of_expert = [&](const std::string& layer) {
    const auto found = weights_.of_expert.find(layer);
    return found == weights_.of_expert.end() ? int64_t{0} : found->second;
  };
  for (const Routing& routing : output.routings)
    touched.add_(distinct_experts(routing, images).mul(of_expert(routing.layer)));
  for (const SoftRouting& routing : output.soft_routings) touched.add_(of_expert(routing.layer) * routing.experts);
  images_ += images;
  sum_ += touched.sum(at::kDouble).item<double>();
  most_ = std::max(most_, touched.max().item<int64_t>());
}

Json TouchedWeights::json() const {
  if (weights_.empty() || images_ == 0) return Json();
  const double mean = sum_ / static_cast<double>(images_);
  return {{"parameters", mean},
          {"parameters_max", most_},
          {"bytes", kBytesPerWeight * mean},
          {"bytes_max", kBytesPerWeight * most_}};
}

}  // namespace sparsight
