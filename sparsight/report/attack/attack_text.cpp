#include "sparsight/report/attack/attack_text.h"

#include <cmath>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/report/attack/attack_routing_text.h"
#include "sparsight/report/format.h"

namespace sparsight {
namespace {

int64_t whole_number(const Json& record, const char* key) {
  const double value = number(record, key).value_or(0);
  return std::abs(value) < 1e18 ? static_cast<int64_t>(value) : 0;
}

// "91.20 % (95 % CI: 81.00 to 96.10), 31 of 34"
std::string share_text(const Json& share) {
  return cat(percent(number(share, "value")), " (95 % CI: ", attack_interval_text(share), "), ",
             grouped(whole_number(share, "count")), " of ", grouped(whole_number(share, "of")));
}

bool is_multi_label(const Json& result) { return member(member(result, "data"), "multi_label") == Json(true); }

std::string significant(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string value_line(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return significant(value.get<double>());
  if (value.is_array() && value.empty()) return "none";
  return shown(value);
}

std::string settings_line(const Json& settings) {
  std::string line;
  for (const auto& [key, value] : settings.items()) line += cat(", ", key, " ", value_line(value));
  return line;
}

std::string cascade_text(const Json& attack) {
  const std::string version = text(attack, "version");
  return text(attack, "name") + (version.empty() ? "" : " (" + version + ")");
}

std::string capacity_line(const Json& result) {
  if (member(result, "images_share_capacity") != Json(true)) return "experts' capacity: no limit";
  const Json &capacity = member(member(result, "model"), "capacity"), &drops = member(result, "drop_rate");
  const Json& effective = member(capacity, "effective_factor");
  std::string line =
      "experts' capacity: factor " + value_line(effective.is_number() ? effective : member(capacity, "eval_factor"));
  for (const char* key : {"multiple", "priority"}) line += cat(", ", key, " ", value_line(member(capacity, key)));
  const int64_t group = whole_number(capacity, "group");
  line += group > 0 ? cat(", groups of ", group, " ", text(capacity, "group_unit")) : ", one group per batch";
  if (drops.is_object())
    line +=
        cat(", dropped ", percent(number(drops, "clean")), " clean, ", percent(number(drops, "attacked")), " attacked");
  return line;
}

bool is_targeted(const Json& result) { return member(result, "target").is_object(); }

// "12 of 64 images of the test split of glyphs, only of the classes house, star, fingerprint 3f..."
std::string images_line(const Json& result) {
  const Json& data = member(result, "data");
  std::string only;
  for (const Json& name : member(data, "classes"))
    only += (only.empty() ? ", only of the classes " : ", ") + value_line(name);
  return cat(grouped(whole_number(result, "images")), " of ", grouped(whole_number(data, "of")), " images of the ",
             split_name(text(data, "split")), " split of ", text(data, "name"), only, ", fingerprint ",
             text(data, "fingerprint"));
}

// How far a targeted attack came; empty for another one.
std::vector<std::string> target_findings(const Json& result) {
  const Json& target = member(result, "target");
  if (!target.is_object()) return {};
  return {"success is a prediction of the target, " + attack_target_text(result),
          "predicted as the target before the attack " + share_text(member(target, "predicted_clean")),
          cat("left out of the success rate: ", grouped(whole_number(target, "left_out")),
              " images whose label is the target")};
}

// Why images were attacked together; "" if they were not.
std::string together_line(const Json& result) {
  std::string why;
  for (const auto& [key, reason] : {std::pair{"images_share_capacity", "they share the experts' capacity"},
                                    {"images_choose_together", "routers choose experts among all images of a batch"},
                                    {"images_share_objective", "the objective is one number of a batch"}})
    if (member(result, key) == Json(true)) why += (why.empty() ? "" : "; ") + std::string(reason);
  return why.empty() ? "" : "images attacked together: " + why;
}

// How small the perturbations of FAB are; "" of attacks that do not measure them.
std::string distances_line(const Json& result) {
  const Json &distances = member(result, "distances"), &quantiles = member(distances, "quantiles");
  if (!distances.is_object()) return "";
  const char* none = member(distances, "beyond_epsilon") == Json(true) ? "none found" : "beyond epsilon";
  std::string line = cat("smallest perturbation that fools, in ", text(member(result, "threat"), "norm"), ":");
  for (const auto& [key, name] : {std::pair{"p5", " 5 %: "},
                                  {"p25", ", 25 %: "},
                                  {"median", ", median: "},
                                  {"p75", ", 75 %: "},
                                  {"p95", ", 95 %: "}}) {
    const std::optional<double> value = number(quantiles, key);
    line += name + (value ? significant(*value) : std::string(none));
  }
  return cat(line, "; found for ", grouped(whole_number(distances, "found")), " of ",
             grouped(whole_number(distances, "of")),
             is_targeted(result) ? " images of other classes than the target" : " images that are correct as they are");
}

}  // namespace

std::string attack_score_name(const Json& result) { return is_multi_label(result) ? "precision@1" : "accuracy"; }

std::string attack_interval_text(const Json& share) {
  const std::vector<double> interval = numbers(member(share, "interval"));
  return interval.size() == 2 ? fixed(100 * interval[0], 2) + " to " + fixed(100 * interval[1], 2) : "-";
}

std::vector<std::string> attack_lines(const Json& result) {
  const Json &model = member(result, "model"), &threat = member(result, "threat"), &attack = member(result, "attack"),
             &environment = member(result, "environment");
  const std::string packed = text(model, "packed");
  const std::optional<double> radius = number(threat, "epsilon");  // none of a curve, which has several
  std::vector<std::string> lines{
      cat(text(model, "checkpoint"), ", step ", whole_number(model, "step"), ", weights ", text(model, "fingerprint"),
          packed.empty() ? "" : " packed as " + packed, ", normalised by ", text(model, "normalisation")),
      images_line(result),
      cat(cascade_text(attack), ", ", text(threat, "norm"), ", epsilon ", text(threat, "given"),
          radius ? cat(", which is ", significant(*radius), " of pixels in ", text(threat, "range")) : "",
          member(result, "pixels_clipped") == Json(true) ? ", clipped to them" : ", not clipped"),
      cat("seed ", whole_number(attack, "seed"), ", ", member(attack, "noise") == Json(true) ? "with" : "without",
          " router noise, batch ", whole_number(result, "batch"),
          member(result, "exact") == Json(true) ? " (exact passes)" : "", ", ", text(result, "precision"), ", ",
          whole_number(environment, "threads"), " threads, sparsight ", text(environment, "sparsight"))};
  if (const auto bytes = number(result, "peak_bytes_per_image"))
    lines.back() += cat(", ", grouped((static_cast<int64_t>(*bytes) >> 10) + 1), " KB of memory per image");
  if (is_targeted(result)) lines.push_back("targeted at " + attack_target_text(result));
  lines.push_back(capacity_line(result));
  if (const std::string together = together_line(result); !together.empty()) lines.push_back(together);
  return lines;
}

std::string attack_target_text(const Json& result) {
  const Json& target = member(result, "target");
  if (!target.is_object()) return "";
  const std::string given = text(target, "given");
  if (given == "least_likely") return "the least likely wrong class of each image";
  if (given == "random") return "a random wrong class of each image";
  return cat("class ", whole_number(target, "class"), " (", text(target, "name"), ")");
}

Rows attack_rows(const Json& result) {
  Rows rows{{"attack", "robust", "95 % CI", "gained", "queries", "gradients", "time"}};
  const Json& clean = member(result, "clean_accuracy");
  rows.push_back({"clean", percent(number(clean, "value")), attack_interval_text(clean), "-", "-", "-", "-"});
  for (const Json& stage : member(result, "stages")) {
    const Json& after = member(stage, "robust_after");
    rows.push_back({text(stage, "name"), percent(number(after, "value")), attack_interval_text(after),
                    grouped(whole_number(stage, "gained")), grouped(whole_number(stage, "queries")),
                    grouped(whole_number(stage, "gradients")), duration(number(stage, "seconds").value_or(0))});
  }
  if (!is_targeted(result)) return rows;
  // There is one stage: cascades are untargeted.
  const Json &before = member(member(result, "target"), "predicted_clean"), &after = member(result, "success_rate");
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i].insert(rows[i].begin() + 3, i == 0 ? "at target" : percent(number(i == 1 ? before : after, "value")));
  return rows;
}

std::vector<std::string> attack_findings(const Json& result) {
  const Json &loss = member(result, "loss"), &saved = member(result, "saved_images"),
             &gradients = member(result, "gradient_counts");
  const std::string score = attack_score_name(result);
  std::vector<std::string> lines{
      "clean " + score + " " + share_text(member(result, "clean_accuracy")),
      "robust " + score + " " + share_text(member(result, "robust_accuracy")),
      "success rate " + share_text(member(result, "success_rate")),
      "prediction changed " + share_text(member(result, "prediction_change")),
      cat(is_multi_label(result) ? "mean sigmoid cross entropy " : "mean cross entropy ",
          fixed(number(loss, "clean").value_or(0), 4), " clean, ", fixed(number(loss, "attacked").value_or(0), 4),
          " attacked"),
      cat(grouped(whole_number(result, "queries")), " queries and ", grouped(whole_number(result, "gradients")),
          " gradients in all; ", grouped(whole_number(gradients, "zero")), " gradients were 0, ",
          grouped(whole_number(gradients, "not_finite")), " not finite"),
      cat("saved images: largest perturbation ", significant(number(saved, "largest_norm").value_or(0)), ", pixels ",
          significant(number(saved, "lowest").value_or(0)), " to ", significant(number(saved, "highest").value_or(0)),
          "; read again, ", grouped(whole_number(saved, "misclassified")), " of ", grouped(whole_number(saved, "of")),
          " fooled images are ", is_targeted(result) ? "predicted as their target" : "misclassified",
          ", rounded to 8 bits ", grouped(whole_number(saved, "misclassified_in_8_bits")))};
  for (std::string& line : target_findings(result)) lines.push_back(std::move(line));
  if (const std::string line = distances_line(result); !line.empty()) lines.push_back(line);
  if (const Json& noise = member(result, "random_noise"); noise.is_object())
    lines.push_back("random noise of the same size, on the first images, fools " + share_text(noise));
  const Json &after = member(result, "accuracy_after"), &robust = member(result, "robust_accuracy");
  if (whole_number(after, "count") != whole_number(robust, "count"))
    lines.push_back(score + " after the attack " + share_text(after) +
                    ": images that were misclassified before and are not now count as robust in this line only");
  if (const Json& fdr = member(result, "fdr_at_1"); fdr.is_object())
    lines.push_back("FDR@1 clean " + share_text(member(fdr, "clean")) + "; attacked " +
                    share_text(member(fdr, "attacked")));
  return lines;
}

std::vector<std::string> attack_settings_lines(const Json& result) {
  std::vector<std::string> lines;
  for (const Json& stage : member(result, "stages"))
    lines.push_back(text(stage, "name") + ": " + text(stage, "attack") + settings_line(member(stage, "settings")));
  return lines;
}

std::string attack_text(const Json& result) {
  std::string page;
  for (const std::string& line : attack_lines(result)) page += line + "\n";
  for (const std::string& line : attack_settings_lines(result)) page += "  " + line + "\n";
  page += "\n" + aligned(attack_rows(result)) + "\n";
  if (const Rows routing = attack_routing_rows(result); !routing.empty())
    page += aligned(routing) + "  " + attack_routing_note(result) + "\n\n";
  for (const std::string& line : attack_findings(result)) page += line + "\n";
  for (const Json& note : member(result, "notes")) page += "note: " + value_line(note) + "\n";
  for (const Json& warning : member(result, "warnings")) page += "warning: " + value_line(warning) + "\n";
  return page;
}

}  // namespace sparsight
