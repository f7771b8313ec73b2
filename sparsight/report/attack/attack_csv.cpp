#include "sparsight/report/attack/attack_csv.h"

#include <cstdio>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/printable.h"
#include "sparsight/report/format.h"

namespace sparsight {
namespace {

constexpr const char* kRoutingColumns[] = {"layer",          "experts",
                                           "per_token",      "images",
                                           "change",         "change_moved",
                                           "change_chosen",  "change_public",
                                           "chance",         "of_chance",
                                           "entropy",        "attacked_entropy",
                                           "entropy_nats",   "attacked_entropy_nats",
                                           "load_cv2",       "attacked_load_cv2",
                                           "importance_cv2", "attacked_importance_cv2",
                                           "dropped",        "attacked_dropped",
                                           "load",           "attacked_load"};

std::string csv_cell(const Json& value) {
  if (value.is_string()) return attack_csv_text(value.get<std::string>());
  if (value.is_number_integer()) return std::to_string(value.get<int64_t>());
  if (!value.is_array()) return attack_csv_number(value);
  std::string list;
  for (const Json& entry : value) list += (list.empty() ? "" : " ") + csv_cell(entry);
  return list;
}

}  // namespace

std::string attack_csv_text(const std::string& text) {
  const std::string safe = printable(text);
  return safe.find_first_of(",\"\n") == std::string::npos ? safe : csv_quoted(safe);
}

std::string attack_csv_number(const Json& value) {
  if (!value.is_number()) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value.get<double>());
  return text;
}

std::string attack_stages_csv(const Json& stages) {
  std::string csv = "name,attack,robust_before,gained,robust_after,queries,gradients,seconds\n";
  for (const Json& stage : stages)
    csv += cat(attack_csv_text(text(stage, "name")), ",", attack_csv_text(text(stage, "attack")), ",",
               stage.at("robust_before"), ",", stage.at("gained"), ",", stage.at("robust_after").at("count"), ",",
               stage.at("queries"), ",", stage.at("gradients"), ",", attack_csv_number(stage.at("seconds")), "\n");
  return csv;
}

std::string attack_routing_csv(const Json& routing) {
  std::string csv;
  for (const char* column : kRoutingColumns) csv += (csv.empty() ? "" : ",") + std::string(column);
  csv += "\n";
  for (const Json& layer : routing) {
    std::string line;
    for (const char* column : kRoutingColumns) {
      if (column != kRoutingColumns[0]) line += ",";
      line += csv_cell(member(layer, column));
    }
    csv += line + "\n";
  }
  return csv;
}

}  // namespace sparsight
