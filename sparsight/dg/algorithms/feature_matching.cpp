#include "sparsight/dg/algorithms/feature_matching.h"

#include "sparsight/dg/algorithms/feature_distance.h"

namespace sparsight {
namespace {

class FeatureMatching : public DomainAlgorithm {
 public:
  FeatureMatching(const FeatureMatchingOptions& options, FeatureDistance distance, const AlgorithmContext& context)
      : DomainAlgorithm(context, 1), options_(options), distance_(std::move(distance)) {}

 protected:
  at::Tensor objective(const DomainPass& pass, NamedMeans& log) override {
    const at::Tensor penalty = mean_pair_distance(pass.features(), distance_);
    log_value(log, "penalty", penalty);
    return pass.risks().mean() + options_.gamma * penalty;
  }

 private:
  FeatureMatchingOptions options_;
  FeatureDistance distance_;
};

}  // namespace

void FeatureMatchingOptions::declare(OptionSet& set) {
  set.real("gamma", &gamma, {0, 1e9}, "weight of the distance between features of domains").search = {"mmd_gamma",
                                                                                                      "10^U(-1,1)"};
}

std::shared_ptr<Algorithm> make_coral(const FeatureMatchingOptions& options, const AlgorithmContext& context) {
  return std::make_shared<FeatureMatching>(options, coral_distance, context);
}

std::shared_ptr<Algorithm> make_mmd(const FeatureMatchingOptions& options, const AlgorithmContext& context) {
  return std::make_shared<FeatureMatching>(
      options, [](const at::Tensor& a, const at::Tensor& b) { return mmd_distance(a, b); }, context);
}

}  // namespace sparsight
