// A configuration whose header claims a result, in a line that a program can check:
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

// All lines "# claim: ..." of a configuration. Raises UsageError for a malformed claim and if there is none.
std::vector<ConfigClaim> read_claims(const std::string& toml, const std::string& origin);

// Whether they hold for the last evaluation of their split in the records of metrics.jsonl.
std::vector<Claim> check_claims(const std::vector<ConfigClaim>& claims, const std::vector<Json>& metrics);

// "runs/reproduce/joint_mnist"
std::string default_claim_folder(const std::string& config);

// Trains the configuration, or resumes an interrupted run of it, and checks its claims. Training output goes to `out`.
// Raises Error if the folder contains a run with different settings.
std::vector<Claim> reproduce_config(const std::string& config, const std::string& folder, std::ostream& out);

}  // namespace sparsight
