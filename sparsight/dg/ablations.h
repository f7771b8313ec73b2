// What can be varied of a model, one factor at a time, as data. A factor names a setting and its values; each value is
// a row of the table (dg/ablation_run.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sparsight {

struct AblationSetting {
  std::string name;                   // "linear"
  std::vector<std::string> settings;  // "section.key=value"
  // A placement of MoE layers: their blocks in a model of `depth` blocks; null for all other ablations.
  std::function<std::vector<int64_t>(int64_t depth)> blocks = {};
};

struct Ablation {
  std::string name;  // "router"
  std::string summary;
  std::vector<AblationSetting> settings;
};

// Those of GMoE (Li et al. 2023): router, its temperature, placement, experts, k, noise, each auxiliary loss, initial
// experts, size of the model.
const std::vector<Ablation>& gmoe_ablations();

// The factors with these names, in this order. Raises UsageError naming the nearest one.
std::vector<Ablation> ablations_named(const std::vector<std::string>& names);

// The ablation of "router.k=1,2,4" or "moe.blocks=[2],[0,2]": the setting is the factor's name. Commas within brackets,
// braces or quotes do not separate values. Raises UsageError for any other string, and for a value that is there twice.
Ablation own_ablation(const std::string& text);

// The two placements of the paper among even blocks, numbered from 0: the last two, and all.
std::vector<int64_t> last_two_blocks(int64_t depth);
std::vector<int64_t> every_two_blocks(int64_t depth);
std::string blocks_setting(const std::vector<int64_t>& blocks);  // "moe.blocks=[8,10]"

}  // namespace sparsight
