#include "sparsight/report/charts/charts.h"

#include <algorithm>
#include <map>

#include "sparsight/analysis/expert_colours.h"
#include "sparsight/report/charts/line_chart.h"
#include "sparsight/report/format.h"

namespace sparsight {

namespace {

constexpr size_t kAreaExperts = 16;  // up to here the load over time is a stacked area chart, above it a heat map
constexpr size_t kMaxLoadRows = 6000;
constexpr size_t kMaxMapHeight = 1024;  // in pixels; rows of more experts than 128 are thinner
constexpr size_t kMaxCurves = 256;      // of one chart, and layers; no run has so many

std::string eval_name(const Json& eval) {
  const std::string shown = split_name(text(eval, "split")), weights = text(eval, "weights");
  return weights.empty() || weights == "model" ? shown : shown + " (" + weights + ")";
}

// One series per (split, weights) of the evaluations.
std::vector<Series> eval_series(const RunMetrics& log, const std::string& key) {
  std::vector<Series> all;
  for (const Json& eval : log.evals) {
    const std::string name = eval_name(eval);
    auto found = std::find_if(all.begin(), all.end(), [&](const Series& series) { return series.name == name; });
    if (found == all.end()) found = all.insert(all.end(), {name, true, {}});
    found->add(number(eval, "step").value_or(0), number(eval, key));
  }
  return all;
}

Series train_series(const RunMetrics& log, const std::string& key, const std::string& name) {
  Series series{name, false, {}};
  for (const Json& record : log.train) series.add(*number(record, "step"), number(record, key));
  return series;
}

std::vector<Series> with_train(Series train, std::vector<Series> evals) {
  evals.insert(evals.begin(), std::move(train));
  return evals;
}

std::vector<Series> auxiliary_losses(const RunMetrics& log) {
  std::vector<Series> all;
  std::map<std::string, size_t> positions;
  for (const Json& record : log.train) {
    const Json& losses = member(record, "losses");
    if (!losses.is_object()) continue;
    for (const auto& [name, value] : losses.items()) {
      const auto found = positions.find(name);
      if (found == positions.end() && all.size() == kMaxCurves) continue;
      const size_t position = found == positions.end() ? positions[name] = all.size() : found->second;
      if (position == all.size()) all.push_back({name, false, {}});
      if (value.is_number()) all[position].add(*number(record, "step"), value.get<double>());
    }
  }
  return all;
}

void add_chart(std::vector<Chart>& charts, const std::string& title, const std::string& note, Json spec) {
  if (!spec.is_null()) charts.push_back({title, note, std::move(spec)});
}

// The evaluations with expert statistics of one (split, weights): the one with the most records, so that a single test
// evaluation is not shown as the course of training.
std::vector<const Json*> evals_over_time(const RunMetrics& log) {
  std::vector<const Json*> longest;
  for (const Json& last : last_evals(log)) {
    std::vector<const Json*> same;
    for (const Json& eval : log.evals)
      if (eval_name(eval) == eval_name(last) && member(eval, "layers").is_array() && !member(eval, "layers").empty())
        same.push_back(&eval);
    if (same.size() > longest.size()) longest = std::move(same);
  }
  return longest;
}

// What the evaluations say of one layer.
struct LayerCourse {
  std::string name;
  std::vector<std::pair<double, const Json*>> points;  // step, entry of "layers"
};

// The layers in the order of their first appearance, at most kMaxCurves.
std::vector<LayerCourse> layers_over_time(const std::vector<const Json*>& evals) {
  std::vector<LayerCourse> courses;
  std::map<std::string, size_t> positions;
  for (const Json* eval : evals) {
    const double step = *number(*eval, "step");
    for (const Json& layer : (*eval)["layers"]) {
      const std::string name = text(layer, "layer");
      const auto found = positions.find(name);
      if (found == positions.end() && courses.size() == kMaxCurves) continue;
      const size_t position = found == positions.end() ? positions[name] = courses.size() : found->second;
      if (position == courses.size()) courses.push_back({name, {}});
      auto& points = courses[position].points;
      if (points.empty() || points.back().first != step) points.emplace_back(step, &layer);
    }
  }
  return courses;
}

std::vector<Series> layer_series(const std::vector<LayerCourse>& courses, const std::string& key) {
  std::vector<Series> all;
  for (const auto& [name, points] : courses) {
    Series series{name, true, {}};
    for (const auto& [step, layer] : points) series.add(step, number(*layer, key));
    all.push_back(std::move(series));
  }
  return all;
}

// [{step, expert, share}], at most kMaxLoadRows values: evaluations are subsampled evenly and always include the last.
Json load_rows(const LayerCourse& course, size_t* experts) {
  const auto& points = course.points;
  *experts = 0;
  for (const auto& [step, layer] : points) *experts = std::max(*experts, member(*layer, "load").size());
  Json rows = Json::array();
  if (*experts > kMaxLoadRows) return rows;
  const size_t stride = 1 + points.size() * *experts / kMaxLoadRows;
  for (size_t i = (points.size() - 1) % stride; i < points.size(); i += stride) {
    const std::vector<double> load = numbers(member(*points[i].second, "load"));
    double sum = 0;
    for (double value : load) sum += value;
    for (size_t e = 0; e < load.size() && sum > 0; ++e)
      rows.push_back({{"step", points[i].first}, {"expert", e}, {"share", load[e] / sum}});
  }
  return rows;
}

Json expert_scale(size_t experts) {
  Json domain = Json::array(), range = Json::array();
  for (size_t e = 0; e < experts; ++e) {
    domain.push_back(e);
    range.push_back(hex(expert_colour(static_cast<int64_t>(e))));
  }
  return {{"domain", domain}, {"range", range}};
}

Json share_tooltip(const Json& first) {
  return Json::array(
      {first,
       {{"field", "expert"}, {"title", "expert"}},
       {{"field", "share"}, {"type", "quantitative"}, {"title", "share of the load"}, {"format", ".1%"}}});
}

// Few experts: stacked shares of the load in the experts' colours (bars where there is one evaluation only).
// Many: a heat map, one row per expert.
Json load_over_time(const LayerCourse& course) {
  size_t experts = 0;
  const Json rows = load_rows(course, &experts);
  if (rows.empty()) return Json();
  const bool once = rows.front()["step"] == rows.back()["step"];
  const Json step_tip = {{"field", "step"}, {"type", "quantitative"}, {"format", ","}};
  Json spec = {{"width", "container"}, {"data", {{"values", rows}}}};
  const Json colour = {{"field", "expert"}, {"type", "ordinal"}, {"scale", expert_scale(experts)}};
  if (once) {
    Json bars = colour;
    bars["legend"] = nullptr;
    spec["height"] = 200;
    spec["mark"] = {{"type", "bar"}, {"cornerRadiusEnd", 2}};
    spec["encoding"] = {
        {"x", {{"field", "expert"}, {"type", "ordinal"}, {"axis", {{"labelAngle", 0}, {"labelOverlap", true}}}}},
        {"y",
         {{"field", "share"}, {"type", "quantitative"}, {"title", "share of the load"}, {"axis", {{"format", ".0%"}}}}},
        {"color", bars},
        {"tooltip", share_tooltip(step_tip)}};
  } else if (experts <= kAreaExperts) {
    Json areas = colour;
    areas["legend"] = {{"orient", "right"}, {"title", "expert"}};
    spec["height"] = 200;
    spec["mark"] = {{"type", "area"}, {"line", false}, {"opacity", 0.9}};
    spec["encoding"] = {
        {"x", {{"field", "step"}, {"type", "quantitative"}, {"scale", {{"zero", false}, {"nice", false}}}}},
        {"y",
         {{"field", "share"},
          {"type", "quantitative"},
          {"stack", "normalize"},
          {"title", "share of the load"},
          {"axis", {{"format", ".0%"}}}}},
        {"color", areas},
        {"order", {{"field", "expert"}, {"type", "quantitative"}}},
        {"tooltip", share_tooltip(step_tip)}};
  } else {
    spec["height"] = std::min(kMaxMapHeight, experts * (experts > 32 ? 8 : 12));
    spec["mark"] = {{"type", "rect"}};
    spec["encoding"] = {
        {"x", {{"field", "step"}, {"type", "ordinal"}, {"axis", {{"labelOverlap", true}, {"labelAngle", 0}}}}},
        {"y", {{"field", "expert"}, {"type", "ordinal"}, {"axis", {{"labelOverlap", true}}}}},
        {"color", share_color()},
        {"tooltip", share_tooltip(step_tip)}};
  }
  return spec;
}

}  // namespace

Json share_color() {
  return {{"field", "share"},
          {"type", "quantitative"},
          {"title", nullptr},
          {"scale", {{"scheme", "viridis"}, {"domainMin", 0}}},
          {"legend", {{"format", ".0%"}}}};
}

std::vector<Chart> training_charts(const RunMetrics& log) {
  std::vector<Chart> charts;
  std::vector<Series> losses = with_train(train_series(log, "loss", "train"), eval_series(log, "loss"));
  Series task = train_series(log, "task_loss", "train, task only");
  if (task.points != losses[0].points) losses.push_back(std::move(task));
  add_chart(charts, "Loss", "Log scale. The train curve includes auxiliary losses.",
            line_chart(losses, {"loss", ".4~g", false, true}));
  const ScoreName score = score_name(log);
  std::string title = score.name;
  title[0] = static_cast<char>(std::toupper(title[0]));
  add_chart(
      charts, title, "",
      line_chart(with_train(train_series(log, score.key, "train"), eval_series(log, score.key)), {score.name, ".1%"}));
  add_chart(charts, "Router accuracy", "Share of images whose most probable expert is that of their super-class.",
            line_chart(with_train(train_series(log, "router_accuracy", "train"), eval_series(log, "router_accuracy")),
                       {"router accuracy", ".1%"}));
  add_chart(charts, "Auxiliary losses", "Unweighted.", line_chart(auxiliary_losses(log), {"loss", ".3~g", true}));
  add_chart(charts, "Learning rate", "", line_chart({train_series(log, "lr", "lr")}, {"learning rate", ".3~g", true}));
  add_chart(charts, "Speed", "",
            line_chart({train_series(log, "images_per_s", "images/s")}, {"images / s", ",.0f", true}));
  return charts;
}

std::vector<Chart> expert_charts(const RunMetrics& log) {
  std::vector<Chart> charts;
  const std::vector<const Json*> evals = evals_over_time(log);
  if (evals.empty()) return charts;
  const std::vector<LayerCourse> layers = layers_over_time(evals);
  add_chart(charts, "Load balance", "Standard deviation of the experts' load divided by its mean: 0 is balanced.",
            line_chart(layer_series(layers, "cv_load"), {"CV of load", ".2f", true}));
  add_chart(charts, "Importance balance", "The same for importance, the sum of an expert's gates.",
            line_chart(layer_series(layers, "cv_importance"), {"CV of importance", ".2f", true}));
  if (layers.size() > 1)
    add_chart(charts, "Router accuracy by layer", "",
              line_chart(layer_series(layers, "router_accuracy"), {"router accuracy", ".1%", true}));
  for (const LayerCourse& layer : layers)
    add_chart(charts, "Expert load: " + layer.name,
              "Share of the chosen assignments, evaluated on " + eval_name(*evals[0]) + " images.",
              load_over_time(layer));
  return charts;
}

}  // namespace sparsight
