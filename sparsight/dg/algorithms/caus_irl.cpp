#include "sparsight/dg/algorithms/caus_irl.h"

#include <ATen/ops/cat.h>

#include "sparsight/dg/algorithms/feature_distance.h"

namespace sparsight {
namespace {

class CausIrl : public DomainAlgorithm {
 public:
  CausIrl(const FeatureMatchingOptions& options, FeatureDistance distance, const AlgorithmContext& context)
      : DomainAlgorithm(context, 1), options_(options), distance_(std::move(distance)) {}

 protected:
  at::Tensor objective(const DomainPass& pass, NamedMeans& log) override {
    const at::Tensor risk = pass.risks().mean();
    RandomStream random = pass.update.random.stream("caus_irl.position");
    std::vector<at::Tensor> firsts, seconds;
    for (const at::Tensor& features : pass.features()) {
      const int64_t position = random.below(features.size(0));
      firsts.push_back(features.narrow(0, 0, position));
      seconds.push_back(features.narrow(0, position, features.size(0) - position));
    }
    const at::Tensor first = at::cat(firsts), second = at::cat(seconds);
    if (first.size(0) < 2 || second.size(0) < 2) return risk;
    const at::Tensor penalty = distance_(first, second);
    log_value(log, "penalty", penalty);
    return risk + options_.gamma * penalty;
  }

 private:
  FeatureMatchingOptions options_;
  FeatureDistance distance_;
};

}  // namespace

std::shared_ptr<Algorithm> make_caus_irl_coral(const FeatureMatchingOptions& options, const AlgorithmContext& context) {
  return std::make_shared<CausIrl>(options, coral_distance, context);
}

std::shared_ptr<Algorithm> make_caus_irl_mmd(const FeatureMatchingOptions& options, const AlgorithmContext& context) {
  return std::make_shared<CausIrl>(
      options, [](const at::Tensor& a, const at::Tensor& b) { return mmd_distance(a, b); }, context);
}

}  // namespace sparsight
