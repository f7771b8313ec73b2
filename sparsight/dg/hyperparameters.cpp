#include "sparsight/dg/hyperparameters.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "sparsight/data/domainbed/numpy_random.h"
#include "sparsight/data/domainbed/seed_hash.h"
#include "sparsight/dg/random_range.h"
#include "sparsight/train/algorithm.h"

namespace sparsight {
namespace {

std::vector<Hyperparameter> of_every_run(const std::string& algorithm, const std::string& set) {
  const bool small = has_small_images(set);
  Hyperparameter batch{
      "batch_size", "loader.batch", small ? "floor(2^U(3,9))" : "floor(2^U(3,5.5))", small ? 64 : 32, {}};
  if (set == "domain_net") batch.range = "floor(2^U(3,5))";
  if (algorithm == "arm" && !small) batch.range = "", batch.fallback = 8;
  return {{"lr", "optimizer.lr", small ? "10^U(-4.5,-2.5)" : "10^U(-5,-3.5)", small ? 1e-3 : 5e-5, {}},
          {"weight_decay", "optimizer.weight_decay", small ? "" : "10^U(-6,-2)", 0.0, {}},
          batch,
          {"resnet_dropout", "model.dropout", "{0.0,0.1,0.5}", 0.0, {}}};
}

void add_declared(std::vector<Hyperparameter>& list, const std::string& algorithm, bool small) {
  algorithms().get(algorithm).describe([&](const OptionSet& options) {
    for (const Option& option : options.options()) {
      const SearchRange& search = option.search;
      if (search.name.empty()) continue;
      const bool differs = small && std::isfinite(search.small_default);
      list.push_back({search.name,
                      "algorithm." + option.name,
                      small && !search.small_range.empty() ? search.small_range : search.range,
                      differs ? Json(search.small_default) : option.get(),
                      {}});
    }
  });
}

}  // namespace

bool has_small_images(const std::string& set) { return set == "rotated_mnist" || set == "colored_mnist"; }

std::vector<Hyperparameter> hyperparameters(const std::string& algorithm, const std::string& set, int64_t hparams_seed,
                                            int64_t trial_seed) {
  std::vector<Hyperparameter> list = of_every_run(algorithm, set);
  add_declared(list, algorithm, has_small_images(set));
  const uint32_t seed = seed_hash({hparams_seed, trial_seed});
  for (Hyperparameter& parameter : list) {
    NumpyRandom random(seed_hash({seed, parameter.name}));
    parameter.value =
        hparams_seed == 0 || parameter.range.empty() ? parameter.fallback : sample_range(parameter.range, random);
  }
  return list;
}

}  // namespace sparsight
