#include "sparsight/report/run/watch_text.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "sparsight/core/error.h"
#include "sparsight/report/format.h"
#include "sparsight/report/run/collapse.h"
#include "sparsight/report/table.h"
#include "sparsight/report/text_table.h"

namespace sparsight {
namespace {

constexpr size_t kRecentRecords = 5;  // of which the speed is a mean

// Between the last records of a training that went on without a break.
std::optional<double> steps_per_second(const std::vector<Json>& train) {
  const size_t count = std::min(train.size(), kRecentRecords + 1);
  if (count < 2) return std::nullopt;
  const Json &first = train[train.size() - count], &last = train.back();
  const double steps = number(last, "step").value_or(0) - number(first, "step").value_or(0),
               seconds = number(last, "seconds").value_or(0) - number(first, "seconds").value_or(0);
  return steps > 0 && seconds > 0 ? std::optional(steps / seconds) : std::nullopt;
}

// From the steps of an epoch, of which records in the middle of one show too many.
std::optional<double> total_steps(const RunMetrics& log, const Json& config) {
  std::optional<double> of_epoch;
  for (const std::vector<Json>* records : {&log.train, &log.evals})
    for (const Json& record : *records)
      if (const double epoch = number(record, "epoch").value_or(0); epoch > 0) {
        const double steps = number(record, "step").value_or(0) / epoch;
        of_epoch = std::min(of_epoch.value_or(steps), steps);
      }
  const double epochs = number(member(config, "train"), "epochs").value_or(0),
               most = number(member(config, "train"), "max_steps").value_or(0);
  if (!of_epoch || epochs <= 0) return most > 0 ? std::optional(most) : std::nullopt;
  return most > 0 ? std::min(most, epochs * *of_epoch) : epochs * *of_epoch;
}

std::string progress_line(const RunMetrics& log, const Json& config) {
  const Json& last = log.train.back();
  const double step = number(last, "step").value_or(0), epoch = number(last, "epoch").value_or(0),
               epochs = number(member(config, "train"), "epochs").value_or(0);
  std::string line = cat("epoch ", static_cast<int64_t>(epoch));
  if (epochs > 0) line += cat(" of ", static_cast<int64_t>(epochs));
  line += cat(", step ", grouped(static_cast<int64_t>(step)));
  const auto speed = steps_per_second(log.train);
  if (speed) line += cat(", ", fixed(*speed, 1), " steps/s");
  if (!log.done.is_null()) return line + ", finished";
  const auto total = total_steps(log, config);
  if (!speed || !total || *total <= step) return line;
  return cat(line, ", about ", duration((*total - step) / *speed), " left");
}

std::vector<double> history(const std::vector<Json>& records, const char* key) {
  std::vector<double> values;
  for (const Json& record : records)
    if (const auto value = number(record, key)) values.push_back(*value);
  return values;
}

void add_curves(Rows& rows, const RunMetrics& log) {
  if (const std::vector<double> loss = history(log.train, "loss"); !loss.empty())
    rows.push_back({"loss", curve_bars(loss), fixed(loss.back(), 4), cat("from ", fixed(loss.front(), 4))});
  std::map<std::string, std::vector<Json>> series;
  for (const Json& eval : log.evals)
    if (is_reported(eval)) series[part_of_eval(eval)].push_back(eval);
  for (const auto& [split, evals] : series) {
    const ScoreName score = score_name(evals.back());
    const std::vector<double> values = history(evals, score.key);
    if (values.empty()) continue;
    rows.push_back({cat(split, " ", score.name), curve_bars(values), fixed(100 * values.back(), 2) + " %",
                    cat("best ", fixed(100 * *std::max_element(values.begin(), values.end()), 2), " %")});
  }
}

void add_expert_loads(Rows& rows, const Json& layers) {
  for (const Json& layer : layers) {
    const std::vector<double> load = numbers(member(layer, "load"));
    if (!load.empty())
      rows.push_back({text(layer, "layer"), load_bars(load), cat(load.size(), " experts"),
                      cat("busiest / mean ", fixed(number(layer, "max_over_mean").value_or(0), 2))});
  }
}

}  // namespace

std::string curve_bars(const std::vector<double>& values, size_t columns) {
  if (values.empty() || columns == 0) return "";
  const size_t count = std::min(values.size(), columns);
  std::vector<double> means;
  for (size_t bar = 0; bar < count; ++bar) {
    const auto first = values.begin() + static_cast<int64_t>(values.size() * bar / count),
               end = values.begin() + static_cast<int64_t>(values.size() * (bar + 1) / count);
    means.push_back(std::accumulate(first, end, 0.0) / static_cast<double>(end - first));
  }
  const auto [low, high] = std::minmax_element(means.begin(), means.end());
  const double least = *low, range = *high - least;
  // The smallest is the lowest block, not an empty one.
  constexpr double kLowest = 1.0 / 16;
  for (double& mean : means) mean = range > 0 ? kLowest + (1 - kLowest) * (mean - least) / range : kLowest;
  return load_bars(means, 1);
}

std::string watch_text(const RunMetrics& log, const Json& config) {
  if (log.train.empty()) return "no step is recorded yet\n";
  Rows rows(1, {"", "", "now", ""});
  add_curves(rows, log);
  const Json last = final_eval(log, /*with_layers=*/true);
  if (!last.is_null()) add_expert_loads(rows, member(last, "layers"));
  std::string all = progress_line(log, config) + "\n" + aligned(rows);
  for (const std::string& line : find_collapse(log, config)) all += line + "\n";
  return all;
}

}  // namespace sparsight
