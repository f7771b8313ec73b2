#include "sparsight/dg/hyperparameters.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "sparsight/data/domainbed/domain_sets.h"
#include "sparsight/data/domainbed/numpy_random.h"
#include "sparsight/data/domainbed/seed_hash.h"
#include "sparsight/dg/random_range.h"
#include "sparsight/train/algorithm.h"

namespace sparsight {
namespace {

std::vector<Hyperparameter> of_every_run(const DomainSet& set) {
  const bool small = set.small_side > 0;
  const std::string batches = small ? "floor(2^U(3,9))" : "floor(2^U(3,5.5))";
  return {{"lr", "optimizer.lr", small ? "10^U(-4.5,-2.5)" : "10^U(-5,-3.5)", small ? 1e-3 : 5e-5, {}},
          {"weight_decay", "optimizer.weight_decay", small ? "" : "10^U(-6,-2)", 0.0, {}},
          {"batch_size", "loader.batch", set.batch_range.empty() ? batches : set.batch_range, small ? 64 : 32, {}},
          {"resnet_dropout", "model.dropout", "{0.0,0.1,0.5}", 0.0, {}}};
}

// What DomainBed draws for every run, although settings follow none of it here: models and data have settings of their
// own, vit_dropout is of its own ViT. An algorithm may declare one of them.
void add_unused(std::vector<Hyperparameter>& list) {
  const std::vector<Hyperparameter> drawn{{"data_augmentation", "", "", true, {}},
                                          {"resnet18", "", "", false, {}},
                                          {"resnet50_augmix", "", "", true, {}},
                                          {"dinov2", "", "", false, {}},
                                          {"vit", "", "", false, {}},
                                          {"vit_attn_tune", "", "", false, {}},
                                          {"freeze_bn", "", "", false, {}},
                                          {"lars", "", "", false, {}},
                                          {"linear_steps", "", "", 500, {}},
                                          {"vit_dropout", "", "{0.0,0.1,0.5}", 0.0, {}},
                                          {"class_balanced", "", "", false, {}},
                                          {"nonlinear_classifier", "", "", false, {}}};
  for (const Hyperparameter& parameter : drawn)
    if (std::ranges::find(list, parameter.name, &Hyperparameter::name) == list.end()) list.push_back(parameter);
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

// A default that replaces a number with a fraction has one too.
Json as_before(const Json& value, const Json& replaced) {
  return value.is_number() && replaced.is_number_float() ? Json(value.get<double>()) : value;
}

// The one that the key follows, which gets the name of the entry.
Hyperparameter& renamed(std::vector<Hyperparameter>& list, const ProtocolDefault& entry) {
  const auto known = std::ranges::find(list, entry.key, &Hyperparameter::key);
  if (entry.key.empty() || known == list.end()) {
    const std::string name = entry.name.empty() ? entry.key.substr(entry.key.find('.') + 1) : entry.name;
    return list.emplace_back(Hyperparameter{name, entry.key, "", {}, {}});
  }
  if (entry.name.empty() || entry.name == known->name) return *known;
  Hyperparameter own = *known;
  own.name = entry.name;
  known->key.clear();  // the usual one, which no setting follows now
  return list.emplace_back(std::move(own));
}

void replace_defaults(std::vector<Hyperparameter>& list, const std::vector<ProtocolDefault>& defaults,
                      const std::string& set) {
  for (const ProtocolDefault& entry : defaults) {
    if (entry.key.starts_with("train.") || find_default(defaults, entry.key, set, entry.name) != &entry) continue;
    Hyperparameter& parameter = renamed(list, entry);
    if (!entry.value.is_null()) parameter.fallback = as_before(entry.value, parameter.fallback);
    if (entry.range) parameter.range = *entry.range;
  }
}

}  // namespace

bool has_small_images(const std::string& set) { return domain_set(set).small_side > 0; }

std::vector<Hyperparameter> all_hyperparameters(const std::string& algorithm, const std::string& set,
                                                int64_t hparams_seed, int64_t trial_seed,
                                                const std::vector<ProtocolDefault>& of_model) {
  std::vector<Hyperparameter> list = of_every_run(domain_set(set));
  add_declared(list, algorithm, has_small_images(set));
  replace_defaults(list, defaults_of_algorithm(algorithm), set);
  replace_defaults(list, of_model, set);
  add_unused(list);
  const uint32_t seed = seed_hash({hparams_seed, trial_seed});
  for (Hyperparameter& parameter : list) {
    NumpyRandom random(seed_hash({seed, parameter.name}));
    parameter.value =
        hparams_seed == 0 || parameter.range.empty() ? parameter.fallback : sample_range(parameter.range, random);
  }
  return list;
}

std::vector<Hyperparameter> hyperparameters(const std::string& algorithm, const std::string& set, int64_t hparams_seed,
                                            int64_t trial_seed, const std::vector<ProtocolDefault>& of_model) {
  std::vector<Hyperparameter> list = all_hyperparameters(algorithm, set, hparams_seed, trial_seed, of_model);
  std::erase_if(list, [](const Hyperparameter& parameter) { return parameter.key.empty(); });
  return list;
}

}  // namespace sparsight
