#include "sparsight/report/table.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/report/format.h"
#include "sparsight/report/run/accuracy_cells.h"
#include "sparsight/report/run/class_information_text.h"
#include "sparsight/report/run/collapse.h"
#include "sparsight/report/run/experts_per_token.h"
#include "sparsight/report/run/superclass_text.h"
#include "sparsight/report/text_table.h"

namespace sparsight {

namespace {

constexpr size_t kListedCells = 16;    // above this, only the worst lines are listed
constexpr size_t kWorstCells = 5;      // this many
constexpr size_t kListedExperts = 16;  // above this, a summary: the shares would not fit on a line
constexpr size_t kListedConfusions = 5;
constexpr size_t kTopExperts = 2;    // named for each class
constexpr size_t kMaxLoadBars = 64;  // more experts share a bar

std::string whole(const Json& record, const std::string& key) {
  const auto value = number(record, key);
  return value && std::abs(*value) < 1e15 ? grouped(static_cast<int64_t>(*value)) : "-";
}

std::string decimal(const Json& record, const std::string& key, int decimals) {
  const auto value = number(record, key);
  return value ? fixed(*value, decimals) : "-";
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

Rows result_rows(const RunMetrics& log) {
  const ScoreName score = score_name(log);
  const auto fdr = [](const Json& eval) { return number(eval, "fdr_at_1"); };
  const std::vector<Json> evals = last_evals(log);
  const bool any_fdr = std::ranges::any_of(evals, [&](const Json& eval) { return fdr(eval).has_value(); });
  Rows rows = {{"split", "weights", "step", "images", score.name, "loss"}};
  if (any_fdr) rows[0].insert(rows[0].end() - 1, "FDR@1");
  const auto routed = [](const Json& eval) { return number(eval, "router_accuracy"); };
  const bool any_routed = std::ranges::any_of(evals, [&](const Json& eval) { return routed(eval).has_value(); });
  if (any_routed) rows[0].insert(rows[0].end() - 1, "router accuracy");
  for (const Json& eval : evals) {
    rows.push_back({or_dash(part_of_eval(eval)), or_dash(weights_of_eval(eval)), whole(eval, "step"),
                    whole(eval, "images"), percent(number(eval, score.key)), decimal(eval, "loss", 4)});
    if (any_fdr) rows.back().insert(rows.back().end() - 1, percent(fdr(eval)));
    if (any_routed) rows.back().insert(rows.back().end() - 1, percent(routed(eval)));
  }
  return rows;
}

double sum_values(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// "15 8 12": the share of every expert in percent of `sum`, or their range if there are many.
std::string shares(const std::vector<double>& load, double sum) {
  if (load.empty() || sum <= 0) return "nothing routed";
  if (load.size() > kListedExperts) {
    const auto [least, most] = std::minmax_element(load.begin(), load.end());
    return fixed(100 * *least / sum, 1) + " to " + fixed(100 * *most / sum, 1);
  }
  std::vector<std::string> parts;
  for (double value : load) parts.push_back(fixed(100 * value / sum, 0));
  return join(parts, " ");
}

// Bars and shares, both relative to the chosen assignments.
std::string against_chosen(const std::vector<double>& counts, const std::vector<double>& chosen) {
  const double most = chosen.empty() ? 0 : *std::max_element(chosen.begin(), chosen.end());
  return load_bars(counts, most) + "  " + shares(counts, sum_values(chosen));
}

Rows expert_rows(const Json& layers) {
  const bool any_dropped =
      std::any_of(layers.begin(), layers.end(), [](const Json& layer) { return !member(layer, "kept").is_null(); });
  Rows rows = {
      {"MoE layer", "experts", "load of each expert, %", "CV", "busiest / mean", "dropped", "experts per token"}};
  if (any_dropped) rows[0].insert(rows[0].begin() + 3, "kept, % of all chosen");
  for (const Json& layer : layers) {
    const std::vector<double> load = numbers(member(layer, "load")), kept = numbers(member(layer, "kept"));
    rows.push_back({or_dash(text(layer, "layer")), std::to_string(load.size()), against_chosen(load, load),
                    decimal(layer, "cv_load", 2), decimal(layer, "max_over_mean", 2),
                    percent(number(layer, "dropped"), 1), layer_experts_per_token(layer)});
    if (any_dropped) rows.back().insert(rows.back().begin() + 3, against_chosen(kept.empty() ? load : kept, load));
  }
  return rows;
}

// What the routers report themselves, of those layers whose routers do.
Rows router_rows(const Json& layers) {
  Rows rows = {{"MoE layer", "reported by its router"}};
  for (const Json& layer : layers)
    if (const std::string metrics = router_metrics(layer); !metrics.empty())
      rows.push_back({or_dash(text(layer, "layer")), metrics});
  return rows;
}

Rows information_rows(const Json& layers) {
  Rows rows = {{"MoE layer", "what its experts tell about the class"}};
  for (const Json& layer : layers)
    if (const std::string information = class_information_text(layer); !information.empty())
      rows.push_back({or_dash(text(layer, "layer")), information});
  return rows;
}

// "3 41 %, 0 22 %": the experts with the most of a class's assignments.
// names: of the experts, or {}: their numbers.
std::string top_experts(const std::vector<double>& counts, const std::vector<std::string>& names) {
  std::vector<size_t> order(counts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return counts[a] > counts[b]; });
  const double sum = sum_values(counts);
  std::string list;
  for (size_t i = 0; i < std::min(kTopExperts, order.size()) && counts[order[i]] > 0; ++i)
    list += cat(i > 0 ? ", " : "", counts.size() == names.size() ? names[order[i]] : std::to_string(order[i]), " (",
                percent(counts[order[i]] / sum, 0), ")");
  return list;
}

Rows class_rows(const Json& class_expert, const std::vector<std::string>& classes, const std::string& title,
                const std::vector<std::string>& experts) {
  Rows rows = {{title}};
  std::vector<std::vector<std::string>> columns;
  for (const auto& [layer, counts] : class_expert.items()) {
    rows[0].push_back("top experts of " + layer);
    columns.emplace_back();
    for (const Json& row : counts) columns.back().push_back(top_experts(numbers(row), experts));
  }
  for (size_t k = 0; !columns.empty() && k < columns[0].size(); ++k) {
    if (columns[0][k].empty()) continue;
    rows.push_back({k < classes.size() ? classes[k] : std::to_string(k)});
    for (const auto& column : columns) rows.back().push_back(k < column.size() ? or_dash(column[k]) : "-");
  }
  return rows;
}

Rows confusion_rows(const Json& eval) {
  Rows rows = {{"most frequent confusions", ""}};
  const Json& confusions = member(eval, "confusions");
  for (size_t i = 0; confusions.is_array() && i < std::min(kListedConfusions, confusions.size()); ++i)
    rows.push_back({or_dash(text(confusions[i], "true")) + " -> " + or_dash(text(confusions[i], "predicted")),
                    whole(confusions[i], "images") + " of " + whole(confusions[i], "of")});
  return rows;
}

// "99 3": shares of each expert in percent, or the largest if there are many.
std::string expert_percents(const std::vector<double>& shares) {
  if (shares.empty()) return "-";
  if (shares.size() > kListedExperts) {
    const auto best = std::max_element(shares.begin(), shares.end());
    return fixed(100 * *best, 1) + " (expert " + std::to_string(best - shares.begin()) + ")";
  }
  std::vector<std::string> parts;
  for (double value : shares) parts.push_back(fixed(100 * value, 0));
  return join(parts, " ");
}

Rows patch_rows(const Json& reports, const std::vector<std::string>& classes) {
  Rows rows = {{"MoE layer", "patch of", "class", "images", "taken by each expert, %", "with its largest gate, %",
                "taken by any expert", "irrelevant among dropped"}};
  if (!reports.is_array()) return rows;
  for (const Json& report : reports) {
    const Json& by_class = member(report, "classes");
    for (size_t k = 0; by_class.is_array() && k < by_class.size(); ++k) {
      const Json& entry = by_class[k];
      if (number(entry, "images").value_or(0) <= 0) continue;
      rows.push_back({or_dash(text(report, "layer")), or_dash(text(report, "of")),
                      k < classes.size() ? classes[k] : std::to_string(k), whole(entry, "images"),
                      expert_percents(numbers(member(entry, "reached"))),
                      expert_percents(numbers(member(entry, "largest"))), percent(number(entry, "kept"), 1),
                      percent(number(entry, "dropped_irrelevant"), 1)});
    }
  }
  return rows;
}

// Accuracy by class and domain of an evaluation, if it has them; above kListedCells only the worst, worst first.
Rows cell_rows(const Json& eval) {
  std::vector<Json> cells = accuracy_cells(eval);
  if (cells.empty()) return {};
  const bool domains = distinct_strings(cells, "domain").size() > 1, all = cells.size() <= kListedCells;
  std::string first = "class";
  if (!all) {
    first += " (worst " + std::to_string(kWorstCells) + " of " + std::to_string(cells.size()) +
             (domains ? " combinations)" : ")");
    cells = worst_cells(cells, kWorstCells);
  }
  Rows rows = {{first, "domain", "images", "accuracy"}};
  for (const Json& cell : cells)
    rows.push_back({or_dash(text(cell, "class")), or_dash(text(cell, "domain")), whole(cell, "images"),
                    percent(number(cell, "accuracy"))});
  if (all) rows.push_back({"worst", "", "", percent(number(eval, "worst_cell"))});
  if (!domains)
    for (auto& row : rows) row.erase(row.begin() + 1);
  return rows;
}

std::string csv_cell(const Json& value) {
  if (value.is_null()) return "";
  std::string cell = value.is_string() ? value.get<std::string>() : value.dump();
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  for (size_t at = 0; (at = cell.find('"', at)) != std::string::npos; at += 2) cell.insert(at, "\"");
  return "\"" + cell + "\"";
}

}  // namespace

std::string load_bars(const std::vector<double>& load, double most) {
  static const char* const kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (most <= 0 && !load.empty()) most = *std::max_element(load.begin(), load.end());
  const size_t count = std::min(load.size(), kMaxLoadBars);
  std::string bars;
  for (size_t bar = 0; bar < count; ++bar) {
    const auto first = load.begin() + static_cast<int64_t>(load.size() * bar / count),
               end = load.begin() + static_cast<int64_t>(load.size() * (bar + 1) / count);
    const double value = *std::max_element(first, end);
    const double height = most > 0 ? std::clamp(value / most, 0.0, 1.0) : 0;
    bars += value <= 0 ? "·" : kBars[std::min(7, static_cast<int>(height * 8))];
  }
  return bars;
}

std::string result_table(const RunMetrics& log) {
  if (log.evals.empty()) return "";
  std::string table = aligned(result_rows(log));
  const Json eval = final_eval(log, false);
  if (const Rows cells = cell_rows(eval); !cells.empty()) table += "\n" + aligned(cells);
  if (const Rows rows = confusion_rows(eval); rows.size() > 1) table += "\n" + aligned(rows);
  if (const auto error = number(member(eval, "calibration"), "ece"))
    table += "\n" + aligned({{"expected calibration error", percent(*error)}});
  if (const std::string layers = layer_table(member(final_eval(log, true), "layers")); !layers.empty())
    table += "\n" + layers;
  if (const auto collapse = find_collapse(log); !collapse.empty()) table += "\n" + join(collapse, "\n") + "\n";
  if (const std::string touched = touched_text(final_eval(log, true)); !touched.empty()) table += "\n" + touched + "\n";
  return table;
}

std::string evaluation_speed_text(const Json& eval) {
  const auto rate = number(eval, "images_per_s"), peak = number(eval, "peak_memory_mb");
  if (!rate || !(*rate >= 0 && *rate < 1e15)) return "";
  return (*rate < 100 ? fixed(*rate, 1) : grouped(std::llround(*rate))) + " images/s" +
         (peak ? ", peak memory " + fixed(*peak / 1024, 2) + " GB" : "");
}

std::string layer_table(const Json& layers) {
  std::string table;
  for (const Rows& rows :
       {expert_rows(layers), router_measure_rows(layers), information_rows(layers), router_rows(layers)})
    if (rows.size() > 1) table += (table.empty() ? "" : "\n") + aligned(rows);
  return table;
}

std::string router_metrics(const Json& layer) {
  std::string line;
  if (const Json& metrics = member(layer, "router"); metrics.is_object())
    for (const auto& [name, value] : metrics.items()) {
      std::ostringstream shown;
      if (value.is_number()) shown << value.get<double>();
      line += (line.empty() ? "" : ", ") + name + " " + (value.is_number() ? shown.str() : "-");
    }
  return line;
}

std::string class_expert_table(const Json& class_expert, const std::vector<std::string>& classes,
                               const std::string& title, const std::vector<std::string>& experts) {
  Rows rows = class_rows(class_expert, classes, title, experts);
  if (rows.size() <= 1) return "";
  const size_t more = rows.size() - 1 > kListedCells ? rows.size() - 1 - kListedCells : 0;
  rows.resize(rows.size() - more);
  return aligned(rows) + (more > 0 ? cat("  and ", more, " more classes\n") : "");
}

std::string patch_routing_table(const Json& reports, const std::vector<std::string>& classes) {
  const Rows rows = patch_rows(reports, classes);
  return rows.size() > 1 ? aligned(rows) : "";
}

std::string routing_comparison_table(const Json& comparison) {
  Rows rows = {{"", "MoE layer", "router", "experts", "k", "CV", "busiest / mean", "dropped", "mean top gate",
                "what its experts tell about the class"}};
  for (const auto& [key, name] : {std::pair{"a", "A"}, {"b", "B"}})
    for (const Json& layer : member(member(comparison, key), "routing"))
      rows.push_back({name, or_dash(text(layer, "layer")), or_dash(text(layer, "router")), whole(layer, "experts"),
                      whole(layer, "k"), decimal(layer, "cv_load", 2), decimal(layer, "max_over_mean", 2),
                      percent(number(layer, "dropped"), 1), decimal(layer, "mean_top_gate", 2),
                      or_dash(class_information_text(layer))});
  return rows.size() > 1 ? aligned(rows) : "";
}

std::string result_csv(const RunMetrics& log) {
  const char* const columns[] = {"split", "weights", "step", "epoch", "images", score_name(log).key, "loss", "seconds"};
  std::string csv;
  for (const char* column : columns) csv += (csv.empty() ? "" : ",") + std::string(column);
  csv += "\n";
  for (const Json& eval : last_evals(log)) {
    std::string line;
    for (const char* column : columns) line += (column == columns[0] ? "" : ",") + csv_cell(member(eval, column));
    csv += line + "\n";
  }
  return csv;
}

std::string result_markdown(const RunMetrics& log) {
  std::string text = markdown(result_rows(log));
  if (const Rows cells = cell_rows(final_eval(log, false)); !cells.empty()) text += "\n" + markdown(cells);
  const Json eval = final_eval(log, true);
  const Json& layers = member(eval, "layers");
  for (const Rows& rows : {confusion_rows(final_eval(log, false)), expert_rows(layers), router_measure_rows(layers),
                           information_rows(layers), router_rows(layers)})
    if (rows.size() > 1) text += "\n" + markdown(rows);
  if (const std::string touched = touched_text(eval); !touched.empty()) text += "\n" + touched + "\n";
  return text;
}

}  // namespace sparsight
