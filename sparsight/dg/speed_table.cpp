#include "sparsight/dg/speed_table.h"

#include <map>

#include "sparsight/core/nearest_name.h"
#include "sparsight/dg/cost_facts.h"
#include "sparsight/report/format.h"

namespace sparsight {
namespace {

struct SpeedColumn {
  const char* title;
  std::optional<double> DgSpeed::*value;
  std::string (*shown)(double);
};

std::string seconds_text(double value) { return fixed(value, value < 1 ? 4 : 2); }
std::string rate_text(double value) { return fixed(value, value < 100 ? 1 : 0); }
std::string gigabytes_text(double value) { return fixed(value, 2); }

const SpeedColumn kSpeedColumns[] = {
    {"s per step", &DgSpeed::step_seconds, seconds_text},
    {"images/s", &DgSpeed::images_per_s, rate_text},
    {"evaluation images/s", &DgSpeed::evaluation_images_per_s, rate_text},
    {"peak GB", &DgSpeed::peak_gb, gigabytes_text},
    {"evaluation peak GB", &DgSpeed::evaluation_peak_gb, gigabytes_text},
};

using Runs = std::vector<const DgResult*>;

TableFact mean_fact(const Runs& runs, const SpeedColumn& column) {
  double sum = 0;
  int64_t count = 0;
  for (const DgResult* run : runs)
    if (const auto& value = run->speed.*column.value) sum += *value, ++count;
  if (count == 0) return {};
  const double mean = sum / static_cast<double>(count);
  return {column.shown(mean), mean, {}};
}

std::optional<DgCost> cost_among(const Runs& runs) {
  for (const DgResult* run : runs)
    if (run->cost) return run->cost;
  return std::nullopt;
}

DgTable speed_table(const std::string& dataset, const std::map<std::string, Runs>& algorithms) {
  DgTable table{SelectionRule::training_domains, dataset, {}, {}};
  table.title = dataset_title(dataset) + ", time and memory, means over runs";
  const auto any = [&](const auto& has) {
    for (const auto& [algorithm, runs] : algorithms)
      for (const DgResult* run : runs)
        if (has(*run)) return true;
    return false;
  };
  for (const auto& [algorithm, runs] : algorithms) table.rows.push_back({algorithm, "this run", {}});
  for (const SpeedColumn& column : kSpeedColumns) {
    if (!any([&](const DgResult& run) { return (run.speed.*column.value).has_value(); })) continue;
    table.fact_columns.emplace_back(column.title);
    size_t row = 0;
    for (const auto& [algorithm, runs] : algorithms) table.rows[row++].facts.push_back(mean_fact(runs, column));
  }
  if (table.fact_columns.empty() || !any([](const DgResult& run) { return run.cost.has_value(); })) return table;
  size_t row = 0;
  for (const auto& [algorithm, runs] : algorithms) append_cost(table.rows[row++], cost_among(runs));
  append_cost_columns(table);
  return table;
}

}  // namespace

std::vector<DgTable> speed_tables(const std::vector<DgResult>& results) {
  std::map<std::string, std::map<std::string, Runs>> groups;
  for (const DgResult& run : results) groups[run.name.dataset][run.name.algorithm].push_back(&run);
  std::vector<DgTable> tables;
  for (const auto& [dataset, algorithms] : groups)
    if (DgTable table = speed_table(dataset, algorithms); !table.fact_columns.empty())
      tables.push_back(std::move(table));
  return tables;
}

std::string speed_text(const DgSpeed& speed) {
  std::vector<std::string> parts;
  if (speed.step_seconds)
    parts.push_back(seconds_text(*speed.step_seconds) + " s per step" +
                    (speed.images_per_s ? " (" + rate_text(*speed.images_per_s) + " images/s)" : ""));
  if (speed.evaluation_images_per_s)
    parts.push_back("evaluation " + rate_text(*speed.evaluation_images_per_s) + " images/s");
  if (speed.peak_gb)
    parts.push_back(
        "peak memory " + gigabytes_text(*speed.peak_gb) + " GB" +
        (speed.evaluation_peak_gb ? " (" + gigabytes_text(*speed.evaluation_peak_gb) + " GB in evaluation)" : ""));
  return join(parts);
}

}  // namespace sparsight
