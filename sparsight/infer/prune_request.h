// The request of `sparsight prune`, and which experts it leaves.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sparsight {

struct RoutedLayers;

struct PruneRequest {
  std::string path;                    // a run folder or a checkpoint
  std::string checkpoint;              // "best" or "last"; "": best, or last where there is no best
  std::vector<std::string> overrides;  // of [data], [run] and [loader]
  // Exactly one of these four chooses experts.
  bool unused = false;               // removes those that no image chose
  int64_t keep = 0;                  // keeps so many of each layer; 0: another rule
  std::optional<double> below;       // removes those with a smaller share of the layer's choices, 0 to 1
  std::vector<std::string> experts;  // removes these: "blocks.3.mlp:0,4"
  std::string by = "load";           // what `keep` goes by: "load", or "damage": the loss where one alone is missing
  bool merge = false;                // merges what would be removed into the most similar expert that stays
  bool each = false;                 // measures the model without each single expert
  std::string split;                 // to measure on; "": validation, else test
  int64_t images = 0;                // maximum number of them; 0: all
  std::optional<double> max_drop;    // in points of accuracy: raises Error beyond it, and writes nothing
  std::string out;                   // the run folder to write; "": none
};

// Raises UsageError unless exactly one rule chooses experts, and the overrides are of those sections.
void check_request(const PruneRequest& request);

// What was measured of the experts of one router, [E] each.
struct MeasuredExperts {
  std::vector<double> load;        // assignments before capacity
  std::vector<double> importance;  // sums of gates
  std::vector<double> damage;      // with `each` or by = "damage": how much larger the loss is without the expert
};

// For each of `experts` ("LAYER:0,4") the numbers by layer. Raises UsageError for another form, for a layer that the
// routers do not have, and for a number that is no expert of its layer.
std::map<std::string, std::set<int64_t>> parse_experts(const std::vector<std::string>& experts,
                                                       const std::vector<RoutedLayers>& routed);

// Which experts stay, [E]. Raises UsageError where none would.
std::vector<bool> kept_experts(const PruneRequest& request, const RoutedLayers& routed, const MeasuredExperts& measured,
                               const std::map<std::string, std::set<int64_t>>& removed);

}  // namespace sparsight
