#include "sparsight/report/report_page.h"

#include <algorithm>
#include <cmath>

#include "sparsight/analysis/expert_colours.h"
#include "sparsight/core/error.h"
#include "sparsight/report/attack/attack_sections.h"
#include "sparsight/report/charts/charts.h"
#include "sparsight/report/format.h"
#include "sparsight/report/html.h"
#include "sparsight/report/page.h"
#include "sparsight/report/run/class_sections.h"
#include "sparsight/report/run/collapse.h"
#include "sparsight/report/run/expert_map_sections.h"
#include "sparsight/report/run/experts_per_token.h"
#include "sparsight/report/run/superclass_sections.h"
#include "sparsight/report/table.h"

namespace sparsight {
namespace {

std::string whole(std::optional<double> value) {
  return value && std::abs(*value) < 1e15 ? grouped(static_cast<int64_t>(*value)) : "-";
}

std::string decimal(std::optional<double> value, int decimals) { return value ? fixed(*value, decimals) : "-"; }

std::string tile(const std::string& value, const std::string& what, const std::string& detail, bool first = false) {
  return std::string("<div class=\"tile") + (first ? " first" : "") + "\"><span>" + escape_html(what) + "</span><b>" +
         escape_html(value) + "</b><span>" + escape_html(detail) + "</span></div>\n";
}

// "vit on glyphs, router softmax_topk"
std::string subtitle(const Json& config) {
  const auto named = [&](const char* section) { return text(member(config, section), "name"); };
  std::string line = named("model");
  if (const std::string data = named("data"); !data.empty()) line += (line.empty() ? "" : " on ") + data;
  if (const std::string router = named("router"); !router.empty()) line += ", router " + router;
  return line;
}

std::optional<double> largest(const std::vector<Json>& records, const char* key, const char* split = nullptr) {
  std::optional<double> most;
  for (const Json& record : records)
    if (!split || text(record, "split") == split)
      if (const auto value = number(record, key); value && (!most || *value > *most)) most = value;
  return most;
}

std::string median_speed(const std::vector<Json>& train) {
  std::vector<double> speeds;
  for (const Json& record : train)
    if (const auto speed = number(record, "images_per_s")) speeds.push_back(*speed);
  if (speeds.empty()) return "";
  std::nth_element(speeds.begin(), speeds.begin() + speeds.size() / 2, speeds.end());
  return whole(speeds[speeds.size() / 2]) + " images/s (median)";
}

std::string loss_name(const RunSummary& run) {
  const std::string loss = text(member(run.config, "train"), "task_loss");
  const bool several = score_name(run.log).key == std::string("precision_at_1");
  return (loss == "sigmoid_cross_entropy" || (loss != "cross_entropy" && several) ? "sigmoid " : "") +
         std::string("cross entropy");
}

std::string tiles(const RunSummary& run) {
  const RunMetrics& log = run.log;
  const ScoreName score = score_name(log);
  std::string html = "<div class=\"tiles\">\n";
  if (const Json last = final_eval(log, false); last.is_object()) {
    html += tile(percent(number(last, score.key)), part_of_eval(last) + " " + score.name,
                 whole(number(last, "images")) + " images, step " + whole(number(last, "step")), true);
    html += tile(decimal(number(last, "loss"), 4), part_of_eval(last) + " loss", loss_name(run));
    if (const auto routed = number(last, "router_accuracy"))
      html += tile(percent(*routed), "router accuracy", "images routed to their super-class");
  }
  if (const auto best = largest(log.evals, score.key, "val")) {
    const auto count = std::count_if(log.evals.begin(), log.evals.end(),
                                     [](const Json& eval) { return text(eval, "split") == "val"; });
    html += tile(percent(*best), std::string("best validation ") + score.name,
                 cat(count, count == 1 ? " evaluation" : " evaluations"));
  }
  if (!log.train.empty()) {
    // An evaluation may be later than the last train line.
    const auto latest = [&](const char* key) { return std::max(largest(log.train, key), largest(log.evals, key)); };
    const auto epoch = latest("epoch");
    html += tile(whole(latest("step")), "steps trained", epoch ? whole(epoch) + " epochs done" : "");
    auto seconds = number(log.done, "seconds");
    if (!seconds) seconds = largest(log.train, "seconds");
    if (seconds) html += tile(duration(*seconds), "training time", median_speed(log.train));
    if (const auto memory = number(log.done, "peak_memory_mb"))
      html += tile(fixed(*memory / 1024, 2) + " GB", "peak memory", "of the process");
  }
  return html + "</div>\n";
}

void add_results(Page& page, const RunMetrics& log) {
  if (log.evals.empty()) return;
  page.open_section("results", "Results", "last evaluation of each split", true);
  const ScoreName score = score_name(log);
  const std::vector<Json> evals = last_evals(log);
  const bool guided =
      std::ranges::any_of(evals, [](const Json& e) { return number(e, "router_accuracy").has_value(); });
  std::string rows;
  for (const Json& eval : evals)
    rows += "<tr>" + html_cell(html_text(part_of_eval(eval))) + html_cell(html_text(weights_of_eval(eval))) +
            html_cell(whole(number(eval, "step")), "n") + html_cell(whole(number(eval, "images")), "n") +
            html_cell(percent(number(eval, score.key)), "n") +
            (guided ? html_cell(percent(number(eval, "router_accuracy")), "n") : "") +
            html_cell(decimal(number(eval, "loss"), 4), "n") +
            html_cell(duration(number(eval, "seconds").value_or(-1)), "n") + "</tr>\n";
  page.body += html_table(
      "<th>Split</th><th>Weights</th><th class=\"n\">Step</th><th class=\"n\">Images</th><th class=\"n\">" +
          std::string(score.key == std::string("accuracy") ? "Accuracy" : "Precision@1") + "</th>" +
          (guided ? "<th class=\"n\">Router accuracy</th>" : "") + "<th class=\"n\">Loss</th><th class=\"n\">Time</th>",
      rows);
  page.close_section();
}

void add_comparison(Page& page, const Rows& comparison) {
  if (comparison.size() < 2) return;
  page.open_section("comparison", "Comparison", "this run and its baselines", true);
  std::string head, rows;
  for (size_t i = 0; i < comparison[0].size(); ++i)
    head += std::string(i < 2 ? "<th>" : "<th class=\"n\">") + escape_html(comparison[0][i]) + "</th>";
  for (size_t row = 1; row < comparison.size(); ++row) {
    rows += "<tr>";
    for (size_t i = 0; i < comparison[row].size(); ++i)
      rows += html_cell(escape_html(comparison[row][i]), i < 2 ? "" : "n");
    rows += "</tr>\n";
  }
  page.body += html_table(head, rows);
  page.close_section();
}

std::string layer_rows(const Json& eval) {
  std::string rows;
  for (const Json& layer : eval["layers"]) {
    const std::vector<double> load = numbers(member(layer, "load")), kept = numbers(member(layer, "kept"));
    const double most = load.empty() ? 0 : *std::max_element(load.begin(), load.end());
    rows += "<tr>" + html_cell(html_text(text(layer, "layer"))) + html_cell(std::to_string(load.size()), "n") +
            html_cell(load_bars(load), "bars") + html_cell(load_bars(kept.empty() ? load : kept, most), "bars") +
            html_cell(decimal(number(layer, "cv_load"), 2), "n") +
            html_cell(decimal(number(layer, "cv_importance"), 2), "n") +
            html_cell(decimal(number(layer, "max_over_mean"), 2), "n") +
            html_cell(percent(number(layer, "dropped"), 1), "n") +
            html_cell(decimal(number(layer, "mean_top_gate"), 2), "n") +
            html_cell(html_text(layer_experts_per_token(layer))) + "</tr>\n";
  }
  return rows;
}

// What the routers report themselves; "" if none does.
std::string router_table(const Json& eval) {
  std::string rows;
  for (const Json& layer : eval["layers"])
    if (const std::string metrics = router_metrics(layer); !metrics.empty())
      rows += "<tr>" + html_cell(html_text(text(layer, "layer"))) + html_cell(html_text(metrics)) + "</tr>\n";
  return rows.empty() ? "" : html_table("<th>MoE layer</th><th>Reported by its router</th>", rows);
}

void add_experts(Page& page, const RunSummary& run) {
  const Json eval = final_eval(run.log, true);
  if (!eval.is_object()) return;
  page.open_section("experts", "Experts", part_of_eval(eval) + ", step " + whole(number(eval, "step")), true);
  page.body += html_table(
      "<th>MoE layer</th><th class=\"n\">Experts</th><th>Chosen, expert 0 first</th><th>Kept</th>"
      "<th class=\"n\">CV of load</th>"
      "<th class=\"n\">CV of importance</th><th class=\"n\">Busiest / mean</th><th class=\"n\">Dropped</th>"
      "<th class=\"n\">Mean top gate</th><th>Experts per token</th>",
      layer_rows(eval));
  page.body += router_table(eval);
  add_router_measures(page, eval);
  page.charts(expert_charts(run.log));
  page.close_section();
}

// "<b>99</b> 3": percentages, the largest in bold.
std::string bold_percents(const Json& shares) {
  const std::vector<double> values = numbers(shares);
  if (values.empty()) return "-";
  const double most = *std::max_element(values.begin(), values.end());
  std::string html;
  for (double value : values) {
    const std::string number = fixed(100 * value, 0);
    html += (html.empty() ? "" : " ") + (value == most ? "<b>" + number + "</b>" : number);
  }
  return html;
}

void add_patch_routing(Page& page, const RunSummary& run) {
  if (!run.explain.patch_routing.is_array()) return;
  std::string rows;
  for (const Json& report : run.explain.patch_routing) {
    const Json& by_class = member(report, "classes");
    for (size_t k = 0; by_class.is_array() && k < by_class.size(); ++k) {
      const Json& entry = by_class[k];
      if (number(entry, "images").value_or(0) <= 0) continue;
      rows += "<tr>" + html_cell(html_text(text(report, "layer"))) + html_cell(html_text(text(report, "of"))) +
              html_cell(html_text(k < run.classes.size() ? run.classes[k] : std::to_string(k))) +
              html_cell(whole(number(entry, "images")), "n") + html_cell(bold_percents(member(entry, "reached"))) +
              html_cell(bold_percents(member(entry, "largest"))) + html_cell(percent(number(entry, "kept"), 1), "n") +
              html_cell(percent(number(entry, "dropped_irrelevant"), 1), "n") + "</tr>\n";
    }
  }
  if (rows.empty()) return;
  page.open_section("relevant", "Experts and relevant patches", run.explain.caption, true);
  page.body += html_table(
      "<th>MoE layer</th><th>Patch of</th><th>Class</th><th class=\"n\">Images</th>"
      "<th>Taken by each expert, %</th><th>With its largest gate, %</th><th class=\"n\">Taken by any expert</th>"
      "<th class=\"n\">Irrelevant among dropped</th>",
      rows);
  page.close_section();
}

const char* verdict(const ExplainedImage& image) {
  return image.truth.empty() ? "" : image.truth == image.predicted ? "right" : "wrong";
}

// The prediction, coloured by whether it is correct, with its probability.
std::string prediction(const ExplainedImage& image) {
  return std::string("<b class=\"") + verdict(image) + "\">" + html_text(image.predicted) + "</b> " +
         percent(std::clamp(image.probability, 0.0, 1.0), 1);
}

std::string truth_line(const ExplainedImage& image) {
  return image.truth.empty() ? "" : "<small>true: " + escape_html(image.truth) + "</small>";
}

// prefix: of the ids and titles of its sections: "", or "Given images: ".
void add_examples(Page& page, const ExplainSummary& explain, const std::string& prefix) {
  if (explain.examples.empty()) return;
  const std::string of_id = prefix.empty() ? "" : "given_";
  page.open_section(of_id + "examples", prefix + "Example predictions", explain.caption, true);
  page.body += "<div class=\"examples\">\n";
  for (const ExplainedImage& image : explain.examples) {
    page.body += "<div class=\"example\">" + html_image(image.picture_png, image.id) + prediction(image) +
                 "<div class=\"bar " + verdict(image) +
                 "\"><i style=\"width:" + fixed(100 * std::clamp(image.probability, 0.0, 1.0), 1) + "%\"></i></div>" +
                 truth_line(image) + "<small>" + escape_html(image.id) + "</small></div>\n";
  }
  page.body += "</div>\n";
  page.close_section();

  if (std::ranges::none_of(explain.examples, [](const auto& e) { return !e.experts_png.empty(); })) return;
  page.open_section(of_id + "patches", prefix + "Which expert got which patch", "first choice of every patch", true);
  page.body += "<div class=\"routings\">\n";
  for (const ExplainedImage& image : explain.examples)
    if (!image.experts_png.empty())
      page.body += "<figure class=\"routed\">" + html_image(image.experts_png, "experts of " + image.id) +
                   "<figcaption>" + prediction(image) + truth_line(image) + "<small>" + escape_html(image.id) +
                   "</small><small>" + escape_html(image.caption) + "</small></figcaption></figure>\n";
  page.body += "</div>\n";
  page.close_section();
}

void add_settings(Page& page, const std::string& id, const std::string& title, const Json& sections) {
  if (!sections.is_object() || sections.empty()) return;
  page.open_section(id, title, "", false);
  page.body += "<div class=\"settings\">\n";
  const auto value_text = [](const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  for (const auto& [section, settings] : sections.items()) {
    page.body += "<section><h3>" + escape_html(section) + "</h3><table>";
    if (!settings.is_object()) {
      page.body += "<tr>" + html_cell(escape_html(value_text(settings))) + "</tr>";
    } else {
      for (const auto& [key, value] : settings.items())
        page.body += "<tr>" + html_cell(escape_html(key)) + html_cell(escape_html(value_text(value))) + "</tr>";
    }
    page.body += "</table></section>\n";
  }
  page.body += "</div>\n";
  page.close_section();
}

void add_notes(Page& page, const RunMetrics& log) {
  if (log.notes.empty()) return;
  page.open_section("notes", "Notes", std::to_string(log.notes.size()), true);
  page.body += "<ul class=\"notes\">";
  for (const Json& note : log.notes)
    page.body += "<li>step " + whole(number(note, "step")) + ": " + html_text(text(note, "text")) + "</li>";
  page.body += "</ul>\n";
  page.close_section();
}

}  // namespace

std::string report_page(const RunSummary& run, const Rows& comparison) {
  Page page;
  add_results(page, run.log);
  add_comparison(page, comparison);
  if (const auto charts = training_charts(run.log); !charts.empty()) {
    page.open_section("training", "Training", "", true);
    page.charts(charts);
    page.close_section();
  }
  add_classes(page, run.log, run.confused);
  add_superclasses(page, run);
  add_experts(page, run);
  add_expert_maps(page, run);
  add_patch_routing(page, run);
  add_examples(page, run.explain, "");
  add_examples(page, run.explain_images, "Given images: ");
  add_attacks(page, run.attacks);
  add_notes(page, run.log);
  add_settings(page, "configuration", "Configuration", run.config);
  add_settings(page, "environment", "Environment", run.env.is_object() ? Json{{"env.json", run.env}} : Json());

  PageFrame frame{.title = run.name + " - Sparsight report", .heading = run.name, .subtitle = subtitle(run.config)};
  if (!run.warnings.empty())
    frame.notices =
        "<div class=\"notice\" id=\"warnings\">Some files of this run could not be read:" + html_list(run.warnings) +
        "</div>\n";
  if (const auto collapse = find_collapse(run.log, run.config); !collapse.empty())
    frame.notices +=
        "<div class=\"notice\" id=\"collapse\">Experts that are not used:" + html_list(collapse) + "</div>\n";
  frame.lead = tiles(run);
  frame.footer = "Generated by <code>sparsight report</code> from <code>metrics.jsonl</code> in the run folder.";
  return html_page(frame, page);
}

}  // namespace sparsight
