#include "sparsight/report/charts/prediction_charts.h"

#include <map>

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/report/charts/series_colours.h"
#include "sparsight/report/format.h"
#include "sparsight/report/run/accuracy_cells.h"

namespace sparsight {
namespace {

constexpr size_t kNumberedClasses = 12;  // of more, cells are too small for numbers

// Images and correct ones of each class, over domains.
std::map<std::string, std::pair<double, double>> class_counts(const std::vector<Json>& cells) {
  std::map<std::string, std::pair<double, double>> counts;
  for (const Json& cell : cells) {
    const double images = number(cell, "images").value_or(0);
    auto& [all, correct] = counts[text(cell, "class")];
    all += images;
    correct += images * number(cell, "accuracy").value_or(0);
  }
  return counts;
}

Json confusion_values(const Json& eval, const std::vector<std::string>& classes) {
  const auto counts = class_counts(accuracy_cells(eval));
  Json values = Json::array();
  const auto add = [&](const std::string& truth, const std::string& predicted, double images, double of) {
    if (images > 0 && of > 0)
      values.push_back({{"true", truth}, {"predicted", predicted}, {"images", images}, {"share", images / of}});
  };
  for (const std::string& name : classes) add(name, name, counts.at(name).second, counts.at(name).first);
  for (const Json& pair : member(eval, "confusions"))
    add(text(pair, "true"), text(pair, "predicted"), number(pair, "images").value_or(0),
        number(pair, "of").value_or(0));
  return values;
}

Json confusion_chart(const Json& eval) {
  const std::vector<std::string> classes = distinct_strings(accuracy_cells(eval), "class");
  if (classes.empty() || classes.size() > kMaxConfusionClasses || !member(eval, "confusions").is_array()) return Json();
  const Json values = confusion_values(eval, classes);
  Json colour = share_color();
  colour["scale"]["type"] = "sqrt";  // single confusions are visible beside the diagonal
  const auto axis = [&](const char* field, const char* title, int angle) {
    return Json{{"field", field},  {"type", "nominal"},
                {"sort", classes}, {"scale", {{"domain", classes}}},
                {"title", title},  {"axis", {{"labelAngle", angle}, {"labelLimit", 110}}}};
  };
  const Json tooltip =
      Json::array({{{"field", "true"}, {"title", "true class"}},
                   {{"field", "predicted"}, {"title", "predicted"}},
                   {{"field", "images"}, {"type", "quantitative"}, {"format", ",.0f"}},
                   {{"field", "share"}, {"title", "of the class"}, {"type", "quantitative"}, {"format", ".1%"}}});
  Json layers = Json::array({{{"mark", {{"type", "rect"}}}, {"encoding", {{"color", colour}, {"tooltip", tooltip}}}}});
  if (classes.size() <= kNumberedClasses)
    layers.push_back(
        {{"mark", {{"type", "text"}, {"fontSize", 10}}},
         {"encoding",
          {{"text", {{"field", "images"}, {"type", "quantitative"}, {"format", ",.0f"}}},
           {"color", {{"condition", {{"test", "datum.share > 0.3"}, {"value", "black"}}}, {"value", "white"}}}}}});
  return {{"width", "container"},
          {"height", classes.size() * (classes.size() > 20 ? 14 : 24)},
          {"data", {{"values", values}}},
          {"encoding", {{"x", axis("predicted", "predicted class", -40)}, {"y", axis("true", "true class", 0)}}},
          {"layer", layers}};
}

// Points of the intervals of confidence beside the diagonal of a calibrated model.
Json reliability_chart(const Json& eval) {
  const Json& bins = member(member(eval, "calibration"), "bins");
  if (!bins.is_array() || bins.empty()) return Json();
  const auto axis = [](const char* field, const char* title) {
    return Json{{"field", field},
                {"type", "quantitative"},
                {"title", title},
                {"scale", {{"domain", {0, 1}}}},
                {"axis", {{"format", ".0%"}}}};
  };
  const Json tooltip = Json::array({{{"field", "confidence"}, {"type", "quantitative"}, {"format", ".1%"}},
                                    {{"field", "accuracy"}, {"type", "quantitative"}, {"format", ".1%"}},
                                    {{"field", "images"}, {"type", "quantitative"}, {"format", ",d"}}});
  const Json diagonal = Json::array({{{"confidence", 0}, {"accuracy", 0}}, {{"confidence", 1}, {"accuracy", 1}}});
  return {
      {"width", "container"},
      {"height", 220},
      {"encoding", {{"x", axis("confidence", "confidence")}, {"y", axis("accuracy", "accuracy")}}},
      {"layer",
       Json::array({{{"data", {{"values", diagonal}}},
                     {"mark", {{"type", "line"}, {"strokeDash", {4, 4}}, {"strokeWidth", 1}, {"color", "#8a8a8a"}}}},
                    {{"data", {{"values", bins}}},
                     {"mark", {{"type", "point"}, {"filled", true}, {"color", series_colour_at(0)}}},
                     {"encoding",
                      {{"size", {{"field", "images"}, {"type", "quantitative"}, {"legend", nullptr}}},
                       {"tooltip", tooltip}}}}})}};
}

}  // namespace

std::vector<Chart> prediction_charts(const Json& eval, bool photos) {
  std::vector<Chart> charts;
  const auto add = [&](const std::string& title, const std::string& note, Json spec) {
    if (!spec.is_null()) charts.push_back({title, note, std::move(spec)});
  };
  Json matrix = confusion_chart(eval);
  if (photos && !matrix.is_null()) matrix["usermeta"] = {{"photos", true}};  // for charts.js; Vega-Lite ignores it
  add("Confusion matrix",
      cat("Colours: share of a true class's images. Hover for numbers.",
          photos ? " Click a cell for its photos, or go to it with Tab and the arrow keys and press Enter." : ""),
      std::move(matrix));
  add("Calibration",
      cat("Accuracy of the images in each interval of confidence; on the dashed line they are equal. Expected "
          "calibration error: ",
          percent(number(member(eval, "calibration"), "ece")), "."),
      reliability_chart(eval));
  return charts;
}

}  // namespace sparsight
