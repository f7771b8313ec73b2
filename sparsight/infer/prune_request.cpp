#include "sparsight/infer/prune_request.h"

#include <algorithm>
#include <cmath>

#include "sparsight/analysis/choose_experts.h"
#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/models/prune_experts.h"

namespace sparsight {
namespace {

// The number of an expert; -1 for another text.
int64_t expert_number(const std::string& text) {
  constexpr size_t kMaxDigits = 9;
  if (text.empty() || text.size() > kMaxDigits || text.find_first_not_of("0123456789") != std::string::npos) return -1;
  return std::stoll(text);
}

}  // namespace

void check_request(const PruneRequest& request) {
  const int rules = (request.unused ? 1 : 0) + (request.keep > 0 ? 1 : 0) + (request.below ? 1 : 0) +
                    (request.experts.empty() ? 0 : 1);
  if (rules != 1)
    fail_usage("prune needs one rule for the experts that leave, got ", rules,
               "; give --unused, --keep N, --below SHARE or --experts LAYER:E,...");
  if (request.below && !(*request.below >= 0 && *request.below <= 1))
    fail_usage("--below takes a share of the choices from 0 to 1, got ", *request.below);
  if (request.max_drop && std::isnan(*request.max_drop)) fail_usage("--max-drop takes points of accuracy, got nan");
  if (request.by != "load" && request.keep == 0)
    fail_usage("--by ", request.by, " says what --keep goes by; give --keep N");
  for (const std::string& set : request.overrides)
    if (!set.starts_with("data.") && !set.starts_with("run.") && !set.starts_with("loader."))
      fail_usage("prune measures the run as it is: --set takes settings of [data], [run] and [loader], got ",
                 printable(set));
}

std::map<std::string, std::set<int64_t>> parse_experts(const std::vector<std::string>& experts,
                                                       const std::vector<RoutedLayers>& routed) {
  std::vector<std::string> known;
  for (const RoutedLayers& each : routed) known.push_back(each.routing);
  std::map<std::string, std::set<int64_t>> removed;
  for (const std::string& item : experts) {
    const size_t colon = item.rfind(':');
    if (colon == std::string::npos || colon + 1 == item.size())
      fail_usage("--experts takes LAYER:E,..., as in ", known.front(), ":0,4; got ", printable(item));
    const size_t layer = find_position(item.substr(0, colon), known, "layer of experts");
    for (size_t begin = colon + 1; begin <= item.size();) {
      const size_t end = std::min(item.find(',', begin), item.size());
      const std::string text = item.substr(begin, end - begin);
      const int64_t expert = expert_number(text);
      if (expert < 0 || expert >= routed[layer].experts)
        fail_usage("--experts: ", known[layer], " has experts 0 to ", routed[layer].experts - 1, ", got ",
                   text.empty() ? "nothing" : printable(text));
      removed[known[layer]].insert(expert);
      begin = end + 1;
    }
  }
  return removed;
}

std::vector<bool> kept_experts(const PruneRequest& request, const RoutedLayers& routed, const MeasuredExperts& measured,
                               const std::map<std::string, std::set<int64_t>>& removed) {
  std::vector<bool> kept(static_cast<size_t>(routed.experts), true);
  if (request.unused)
    kept = used_experts(measured.load);
  else if (request.below)
    kept = experts_from_share(measured.load, *request.below);
  else if (request.keep > 0 && request.by == "damage")
    kept = best_experts(measured.damage, measured.load, request.keep);
  else if (request.keep > 0)
    kept = best_experts(measured.load, measured.importance, request.keep);
  else if (const auto named = removed.find(routed.routing); named != removed.end())
    for (const int64_t expert : named->second) kept[static_cast<size_t>(expert)] = false;
  if (std::ranges::find(kept, true) == kept.end())
    fail_usage("all ", routed.experts, " experts of ", routed.routing, " would be removed; leave at least one");
  return kept;
}

}  // namespace sparsight
