#include "sparsight/dg/single_source.h"

#include <algorithm>
#include <map>
#include <set>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/dg/cost_facts.h"
#include "sparsight/dg/results/published_results.h"
#include "sparsight/report/format.h"

namespace sparsight {
namespace {

using RunsByTrial = std::map<int64_t, std::vector<const DgResult*>>;

// "out" accuracies of all environments where that of the source is highest; of equals the first.
std::vector<double> selected_out(const std::vector<const DgResult*>& runs, size_t source) {
  const DgEvaluation* best = nullptr;
  for (const DgResult* run : runs)
    for (const DgEvaluation& evaluation : run->evaluations)
      if (best == nullptr || evaluation.out[source] > best->out[source]) best = &evaluation;
  return best->out;
}

DgTable::Row row_of_source(const std::string& algorithm, RunsByTrial trials, size_t source) {
  DgTable::Row row{algorithm, "this run", {}};
  std::vector<std::vector<double>> columns;
  for (auto& [trial, runs] : trials) {
    std::ranges::stable_sort(runs, {}, [](const DgResult* run) { return run->name.hparams_seed; });
    const std::vector<double> out = selected_out(runs, source);
    columns.resize(std::max(columns.size(), out.size()));
    for (size_t e = 0; e < out.size(); ++e) columns[e].push_back(100 * out[e]);
  }
  for (const auto& column : columns) row.cells.emplace_back(mean_and_error(column));
  return row;
}

std::vector<double> row_means(const DgTable::Row& row) {
  std::vector<double> means;
  for (const auto& cell : row.cells) means.push_back(cell->mean);
  return means;
}

TableFact gain_fact(double gain) { return {signed_fixed(100 * gain, 1) + " %", 100 * gain, {}}; }

std::vector<TableFact> gains(const std::vector<double>& accuracy, const std::vector<double>& baseline, size_t source) {
  const SingleSourceGain gain = single_source_gain(accuracy, baseline, source);
  return {gain_fact(gain.source), gain_fact(gain.others), gain_fact(gain.mean_of_others)};
}

const DgTable::Row* baseline_of_table(const DgTable& table, const std::string& wanted) {
  const auto is_wanted = [&](const DgTable::Row& row) {
    return wanted.empty() ? row.algorithm.find("(resnet50)") != std::string::npos
                          : comparable_name(row.algorithm) == comparable_name(wanted);
  };
  const auto found = std::ranges::find_if(table.rows, is_wanted);
  if (found != table.rows.end()) return &*found;
  return wanted.empty() ? &table.rows.front() : nullptr;
}

void add_gains(DgTable& table, const std::string& baseline, size_t source) {
  const DgTable::Row* of = baseline_of_table(table, baseline);
  if (of == nullptr) return;
  const std::vector<double> means = row_means(*of);
  table.title += ", gains over " + of->algorithm;
  const bool has_zero = std::ranges::count(means, 0.0) > 0;  // no gain over nothing
  for (DgTable::Row& row : table.rows)
    if (&row != of && !has_zero && row.cells.size() == means.size()) row.facts = gains(row_means(row), means, source);
}

// The paper's table is of DomainNet's painting.
bool has_published(const DgTable& table, size_t source) {
  constexpr size_t kPainting = 2;
  return table.dataset == "domainnet" && source == kPainting;
}

// After the gains, whose cells a row without any leaves empty. always: also where no run says its cost.
void add_costs(DgTable& table, const std::map<std::string, RunsByTrial>& algorithms, bool always) {
  std::map<std::string, std::optional<DgCost>> costs;
  for (const auto& [algorithm, trials] : algorithms)
    for (const auto& [trial, runs] : trials)
      for (const DgResult* run : runs)
        if (run->cost) costs[algorithm] = run->cost;
  if (costs.empty() && !always) return;
  for (DgTable::Row& row : table.rows) {
    row.facts.resize(table.fact_columns.size());
    append_cost(row, costs[row.algorithm]);
  }
  append_cost_columns(table);
}

// The paper gives MACs in thousand millions, and no parameters.
void add_published_rows(DgTable& table, size_t source) {
  const auto& all = published_single_source();
  for (const SingleSourceResult& result : all) {
    DgTable::Row row{cat("ERM (", result.model, "), Li et al. 2023, table 3"), "Li et al. 2023, table 3", {}};
    for (const double accuracy : result.accuracy) row.cells.emplace_back(MeanAndError{accuracy, -1});
    if (&result != &all.front()) row.facts = gains(result.accuracy, all.front().accuracy, source);
    row.facts.resize(table.fact_columns.size());
    row.facts.back() = {fixed(result.giga_macs, 1) + " G", 1e9 * result.giga_macs, {}};
    table.rows.push_back(row);
  }
}

// The datasets of which some run tests one environment of several alone: pairs of three environments are no sources.
std::set<std::string> usual_sweeps(const std::vector<DgResult>& results) {
  std::set<std::string> datasets;
  for (const DgResult& run : results)
    if (!run.name.single_source && run.name.test_envs.size() == 1 && run.evaluations.front().in.size() > 2)
      datasets.insert(run.name.dataset);
  return datasets;
}

}  // namespace

int64_t find_single_source(const DgResult& run) {
  const auto environments = std::ssize(run.evaluations.front().in);
  const int64_t fewest = run.name.single_source ? 2 : 3;
  if (environments < fewest || std::ssize(run.name.test_envs) != environments - 1) return -1;
  for (int64_t e = 0; e < environments; ++e)
    if (std::ranges::find(run.name.test_envs, e) == run.name.test_envs.end()) return e;
  return -1;
}

std::vector<DgTable> single_source_tables(const std::vector<DgResult>& results, const std::string& baseline,
                                          bool published) {
  std::map<std::pair<std::string, int64_t>, std::map<std::string, RunsByTrial>> groups;
  const std::set<std::string> usual = usual_sweeps(results);
  for (const DgResult& run : results)
    if (const int64_t source = find_single_source(run);
        source >= 0 && (run.name.single_source || !usual.contains(run.name.dataset)))
      groups[{run.name.dataset, source}][run.name.algorithm][run.name.trial_seed].push_back(&run);
  std::vector<DgTable> tables;
  std::vector<std::string> rows;
  bool has_baseline = false;
  for (const auto& [key, algorithms] : groups) {
    const auto source = static_cast<size_t>(key.second);
    DgTable table{SelectionRule::training_domains, key.first, {}, {}};
    const DgResult& some = *algorithms.begin()->second.begin()->second.front();
    const std::vector<std::string> titles =
        environment_titles(key.first, some.environments, some.evaluations.front().in.size());
    table.title = cat(dataset_title(key.first), ", trained on environment ", titles[source], " alone");
    table.fact_columns = {"gain on the source", "mean gain on the others", "gain of the others' mean"};
    for (const auto& [algorithm, trials] : algorithms) {
      table.rows.push_back(row_of_source(algorithm, trials, source));
      rows.push_back(algorithm);
    }
    for (size_t e = 0; e < titles.size(); ++e) table.columns.push_back(titles[e] + (e == source ? " (source)" : ""));
    has_baseline = has_baseline || baseline_of_table(table, baseline) != nullptr;
    add_gains(table, baseline, source);
    const bool with_published = published && has_published(table, source);
    add_costs(table, algorithms, with_published);
    if (with_published) add_published_rows(table, source);
    tables.push_back(table);
  }
  if (!tables.empty() && !has_baseline)
    fail_usage("no table of a single source has the row \"", printable(baseline), "\"; its rows are ", join(rows));
  return tables;
}

}  // namespace sparsight
