// A configuration whose header claims what it reaches, in a line that a program can check:
//
//   # claim: test accuracy >= 97.0 %
//   # claim: validation loss <= 0.25
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "sparsight/reproduce/figure.h"

namespace sparsight {

struct ConfigClaim {
  std::string split;    // "test" or "val"
  std::string measure;  // "accuracy" (in %) or "loss"
  bool at_least = true;
  double level = 0;
  std::string text;  // as written
};

// All lines "# claim: ..." of a configuration. Raises UsageError for one that says anything else, and where there is
// none.
std::vector<ConfigClaim> read_claims(const std::string& toml, const std::string& origin);

// Whether they hold for the last evaluation of their part in the records of metrics.jsonl.
std::vector<Claim> check_claims(const std::vector<ConfigClaim>& claims, const std::vector<Json>& metrics);

// "runs/reproduce/joint_mnist"
std::string default_claim_folder(const std::string& config);

// Trains as the configuration says, or goes on where that was interrupted, and checks what it claims. What training
// prints goes to `out`. Raises Error where the folder holds a run of other settings.
std::vector<Claim> reproduce_config(const std::string& config, const std::string& folder, std::ostream& out);

}  // namespace sparsight
