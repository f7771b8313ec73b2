#include "sparsight/report/run/comparison_text.h"

#include <cstdio>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/report/format.h"
#include "sparsight/report/table.h"

namespace sparsight {
namespace {

// "97.28 to 97.88"
std::string percent_range(const Json& interval) {
  return fixed(100 * interval.at(0).get<double>(), 2) + " to " + fixed(100 * interval.at(1).get<double>(), 2);
}

std::string side_line(const char* name, const Json& side, int64_t images) {
  return cat("  ", name, "  ", percent(side.at("accuracy").get<double>()),
             " (95 % CI: ", percent_range(side.at("interval")), ")  ", grouped(side.at("correct").get<int64_t>()),
             " of ", grouped(images), "  ", side.at("records").get<std::string>(), "\n");
}

// "0.0386", "4.1e-05"
std::string p_text(double p) {
  char text[32];
  std::snprintf(text, sizeof text, p < 0.001 ? "%.1e" : "%.4f", p);
  return text;
}

}  // namespace

std::string comparison_text(const Json& comparison) {
  const auto count = [&](const char* key) { return grouped(comparison.at(key).get<int64_t>()); };
  const auto images = comparison.at("images").get<int64_t>();
  std::string text = cat(comparison.at("data").get<std::string>(), ", ",
                         split_name(comparison.at("split").get<std::string>()), ", ", grouped(images), " images\n");
  if (comparison.value("multi_label", false)) text += "precision@1: the predicted class is among the image's labels\n";
  text += side_line("A", comparison.at("a"), images) + side_line("B", comparison.at("b"), images);
  text += cat("correct: both ", count("both"), ", only A ", count("only_a"), ", only B ", count("only_b"), ", neither ",
              count("neither"), "\n");
  if (const Json& difference = comparison.at("difference"); difference.is_object())
    text += cat("A - B: ", fixed(100 * difference.at("mean").get<double>(), 2),
                " points (95 % CI: ", percent_range(difference.at("interval")), ")\n");
  const Json& test = comparison.at("mcnemar");
  text += cat("McNemar: p = ", p_text(test.at("p_value").get<double>()), " (",
              test.at("exact").get<bool>()
                  ? "exact binomial test"
                  : "chi-square " + fixed(test.at("statistic").get<double>(), 2) + " with continuity correction",
              ")\n");
  if (const std::string routing = routing_comparison_table(comparison); !routing.empty()) text += "\n" + routing;
  for (const Json& note : comparison.at("notes")) text += cat("note: ", note.get<std::string>(), "\n");
  return text;
}

}  // namespace sparsight
