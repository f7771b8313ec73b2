// The hyper-parameters of DomainBed: of every run, and those that an algorithm declares (SearchRange in its options).
// Seed 0 gives the defaults; any other seed samples each from its range with a generator of its own.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"
#include "sparsight/dg/protocol_defaults.h"

namespace sparsight {

struct Hyperparameter {
  std::string name;   // in DomainBed: "irm_lambda"
  std::string key;    // of the configuration: "algorithm.lambda"; "": no setting follows it
  std::string range;  // dg/random_range.h; "": it always has its default
  Json fallback;      // the default
  Json value;         // for the requested seeds
};

// Whether DomainBed counts the images of this data set as small (28 x 28 pixels).
bool has_small_images(const std::string& set);

// algorithm: a name of algorithms(); set: one of domainbed_names(). Defaults of the algorithm, and then those of the
// model, replace DomainBed's. Raises UsageError for an unknown algorithm. Those that settings follow:
std::vector<Hyperparameter> hyperparameters(const std::string& algorithm, const std::string& set, int64_t hparams_seed,
                                            int64_t trial_seed, const std::vector<ProtocolDefault>& of_model = {});
// And those that DomainBed draws but no setting follows, such as lr of an algorithm that has lr_g and lr_d, or vit.
std::vector<Hyperparameter> all_hyperparameters(const std::string& algorithm, const std::string& set,
                                                int64_t hparams_seed, int64_t trial_seed,
                                                const std::vector<ProtocolDefault>& of_model = {});

}  // namespace sparsight
