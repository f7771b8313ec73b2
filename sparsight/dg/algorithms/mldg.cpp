#include "sparsight/dg/algorithms/mldg.h"

#include <algorithm>
#include <numeric>

#include "sparsight/core/shuffle.h"
#include "sparsight/dg/algorithms/inner_training.h"

namespace sparsight {
namespace {

class Mldg : public DomainAlgorithm {
 public:
  Mldg(const MldgOptions& options, const AlgorithmContext& context)
      : DomainAlgorithm(context, 2), options_(options), inner_(context) {}

  UpdateResult update(Minibatches& minibatches, const UpdateContext& context) override {
    const std::vector<Batch> domains = split_domains(minibatches);
    std::vector<size_t> order(domains.size());
    std::iota(order.begin(), order.end(), size_t{0});
    RandomStream random = context.random.stream("mldg.order");
    shuffle(order, random);
    weights().zero_grad();
    UpdateResult result;
    NamedMeans means;
    const double share = 1 / static_cast<double>(domains.size());
    int64_t number = 0;
    for (const MetaPair& pair : meta_pairs(order, options_.meta_test)) {
      const BatchPair batches = equal_batches(domains[pair.train], domains[pair.test]);
      inner_.copy_weights();
      inner_.reset_optimizer();
      result = inner_.step(batches.a, context, number++, [&] { add_gradients(gradients_of_copy(), share); });
      if (!result.not_finite.empty()) return result;
      means.add(result.means);
      std::vector<at::Tensor> of_test;
      const UpdateResult test = inner_.gradients(batches.b, context, number++, of_test);
      if (!test.not_finite.empty()) return test;
      add_gradients(of_test, options_.beta * share);
    }
    result.details["lr"] = weights().lr(context);
    result.means = means;
    if (!weights().step(context, {})) result.not_finite = "gradient";
    return result;
  }

 protected:
  at::Tensor objective(const DomainPass& pass, NamedMeans&) override { return pass.risk(); }

 private:
  std::vector<at::Tensor> gradients_of_copy() const {
    std::vector<at::Tensor> found;
    for (const at::Tensor& parameter : inner_.trainable()) found.push_back(parameter.grad());
    return found;
  }

  void add_gradients(const std::vector<at::Tensor>& gradients, double factor) {
    const at::NoGradGuard no_grad;
    const std::vector<at::Tensor>& parameters = weights().trainable();
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!gradients[i].defined()) continue;
      at::Tensor& sum = parameters[i].mutable_grad();
      sum = sum.defined() ? sum + factor * gradients[i] : factor * gradients[i];
    }
  }

  MldgOptions options_;
  InnerTraining inner_;
};

}  // namespace

void MldgOptions::declare(OptionSet& set) {
  set.real("beta", &beta, {0, 1e9}, "weight of the test domains' gradients").search = {"mldg_beta", "10^U(-1,1)"};
  set.integer("meta_test", &meta_test, {1, 1000}, "domains that test in each update; at most all but one").search = {
      "n_meta_test", "{1,2}"};
}

std::vector<MetaPair> meta_pairs(const std::vector<size_t>& order, int64_t meta_test) {
  const size_t tests = std::min(static_cast<size_t>(meta_test), order.size() - 1), trains = order.size() - tests;
  std::vector<MetaPair> pairs;
  for (size_t i = 0; i < trains; ++i) pairs.push_back({order[i], order[trains + i % tests]});
  return pairs;
}

std::shared_ptr<Algorithm> make_mldg(const MldgOptions& options, const AlgorithmContext& context) {
  return std::make_shared<Mldg>(options, context);
}

}  // namespace sparsight
