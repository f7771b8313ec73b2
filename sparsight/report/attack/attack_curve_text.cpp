#include "sparsight/report/attack/attack_curve_text.h"

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/report/attack/attack_csv.h"
#include "sparsight/report/attack/attack_text.h"
#include "sparsight/report/format.h"

namespace sparsight {
namespace {

const Json& curve_points(const Json& curve) {
  static const Json none = Json::array();
  const Json& points = member(curve, "points");
  return points.is_array() ? points : none;
}

// The mean of a number over the MoE layers of a point; nothing unless all have it.
std::optional<double> layer_mean(const Json& point, const char* key) {
  const Json& layers = member(point, "routing");
  if (!layers.is_array() || layers.empty()) return std::nullopt;
  double sum = 0;
  for (const Json& layer : layers) {
    const auto value = number(layer, key);
    if (!value) return std::nullopt;
    sum += *value;
  }
  return sum / static_cast<double>(layers.size());
}

std::string csv_share(const Json& share) {
  const Json &interval = member(share, "interval"), none;
  const bool known = interval.is_array() && interval.size() == 2;
  std::string line;
  for (const Json* value : {&member(share, "count"), &member(share, "of"), &member(share, "value"),
                            known ? &interval[0] : &none, known ? &interval[1] : &none})
    line += "," + attack_csv_number(*value);
  return line;
}

}  // namespace

Rows attack_curve_rows(const Json& curve) {
  const Json& points = curve_points(curve);
  if (points.empty()) return {};
  const Json& stages = member(points[0], "stages");
  const bool cascade = stages.is_array() && stages.size() > 1;
  Rows rows{{"epsilon", "robust", "95 % CI"}};
  if (cascade)
    for (const Json& stage : stages) rows[0].push_back(text(stage, "name"));
  for (const char* title : {"success rate", "routing changed", "of chance", "time"}) rows[0].emplace_back(title);
  const Json& clean = member(points[0], "clean_accuracy");
  rows.push_back({"0 (clean)", percent(number(clean, "value")), attack_interval_text(clean)});
  rows[1].resize(rows[0].size(), "-");
  for (const Json& point : points) {
    const Json& robust = member(point, "robust_accuracy");
    std::vector<std::string> row{text(point, "given"), percent(number(robust, "value")), attack_interval_text(robust)};
    if (cascade)
      for (const Json& stage : member(point, "stages"))
        row.push_back(percent(number(member(stage, "robust_after"), "value")));
    row.push_back(percent(number(member(point, "success_rate"), "value")));
    row.push_back(percent(layer_mean(point, "change")));
    row.push_back(percent(layer_mean(point, "of_chance"), 1));
    row.push_back(duration(number(point, "seconds").value_or(0)));
    row.resize(rows[0].size(), "-");
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string attack_curve_csv(const Json& curve) {
  std::string csv =
      "given,epsilon,attack,robust,of,robust_accuracy,low,high,gained,queries,gradients,seconds,routing_change,"
      "routing_of_chance\n";
  const auto value = [](std::optional<double> of) { return attack_csv_number(of ? Json(*of) : Json()); };
  for (const Json& point : curve_points(curve))
    for (const Json& stage : member(point, "stages")) {
      csv += attack_csv_text(text(point, "given")) + "," + attack_csv_number(member(point, "epsilon")) + "," +
             attack_csv_text(text(stage, "name")) + csv_share(member(stage, "robust_after"));
      for (const char* key : {"gained", "queries", "gradients", "seconds"})
        csv += "," + attack_csv_number(member(stage, key));
      csv += "," + value(layer_mean(point, "change")) + "," + value(layer_mean(point, "of_chance")) + "\n";
    }
  return csv;
}

std::vector<std::string> attack_curve_notices(const Json& curve) {
  std::vector<std::string> lines;
  const auto add = [&](const Json& list, const std::string& before) {
    if (!list.is_array()) return;
    for (const Json& line : list)
      if (line.is_string()) lines.push_back(before + line.get<std::string>());
  };
  add(member(curve, "warnings"), "warning: ");
  for (const Json& point : curve_points(curve))
    add(member(point, "warnings"), "warning: epsilon " + text(point, "given") + ": ");
  add(member(curve, "notes"), "note: ");
  return lines;
}

std::string attack_curve_text(const Json& curve) {
  std::string page;
  for (const std::string& line : attack_lines(curve)) page += line + "\n";
  if (const Json& points = curve_points(curve); !points.empty())
    for (const std::string& line : attack_settings_lines(points[0])) page += "  " + line + "\n";
  if (const Rows rows = attack_curve_rows(curve); !rows.empty()) page += "\n" + aligned(rows) + "\n";
  for (const std::string& line : attack_curve_notices(curve)) page += line + "\n";
  return page;
}

}  // namespace sparsight
