#include "sparsight/report/attack/attack_routing_text.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/report/format.h"
#include "sparsight/report/table.h"

namespace sparsight {
namespace {

std::string entropy_cell(const Json& layer, const char* key) {
  const auto value = number(layer, key);
  return value ? fixed(*value, 4) : "-";
}

}  // namespace

Rows attack_routing_rows(const Json& result) {
  const Json& layers = member(result, "routing");
  if (!layers.is_array() || layers.empty()) return {};
  const bool any_dropped = std::ranges::any_of(layers, [](const Json& layer) {
    return number(layer, "dropped").value_or(0) > 0 || number(layer, "attacked_dropped").value_or(0) > 0;
  });
  Rows rows{{"MoE layer", "changed", "moved images", "chance", "of chance", "load", "attacked", "entropy", "attacked"}};
  if (any_dropped)
    for (const char* title : {"before capacity", "dropped", "attacked"}) rows[0].emplace_back(title);
  for (const Json& layer : layers) {
    const std::vector<double> load = numbers(member(layer, "load")), after = numbers(member(layer, "attacked_load"));
    // Both on one scale, so that they can be compared.
    double most = 0;
    for (const double count : load) most = std::max(most, count);
    for (const double count : after) most = std::max(most, count);
    rows.push_back({text(layer, "layer"), percent(number(layer, "change")), percent(number(layer, "change_moved")),
                    percent(number(layer, "chance")), percent(number(layer, "of_chance"), 1), load_bars(load, most),
                    load_bars(after, most), entropy_cell(layer, "entropy"), entropy_cell(layer, "attacked_entropy")});
    if (any_dropped)
      for (const char* key : {"change_chosen", "dropped", "attacked_dropped"})
        rows.back().push_back(percent(number(layer, key)));
  }
  return rows;
}

std::string attack_routing_note(const Json& result) {
  const Json& layers = member(result, "routing");
  if (!layers.is_array() || layers.empty()) return "";
  const auto count = [&](const Json& json, const char* key) {
    const auto value = number(json, key);
    return value ? grouped(static_cast<int64_t>(std::clamp(*value, 0.0, 1e15))) : std::string("-");
  };
  return cat("changed: 1 - intersection over union of a token's experts, mean over tokens, then over ",
             count(layers[0], "images"), " images, of which ", count(result, "moved_images"),
             " moved; chance: of random choices; entropy: of the load, 1 if even");
}

}  // namespace sparsight
