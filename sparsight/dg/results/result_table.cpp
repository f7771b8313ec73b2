#include "sparsight/dg/results/result_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/report/escape_names.h"
#include "sparsight/report/html.h"

namespace sparsight {
namespace {

std::optional<MeanAndError> over_trials(const std::vector<std::optional<double>>& values) {
  std::vector<double> present;
  for (const auto& value : values)
    if (value) present.push_back(*value);
  return present.empty() ? std::nullopt : std::optional(mean_and_error(present));
}

std::optional<double> mean_of_all(const std::vector<std::optional<double>>& row) {
  double sum = 0;
  for (const auto& value : row) {
    if (!value) return std::nullopt;
    sum += *value;
  }
  return row.empty() ? std::nullopt : std::optional(sum / static_cast<double>(row.size()));
}

using RunsOfAlgorithms = std::map<std::string, std::vector<const DgResult*>>;

// All that some run has.
std::vector<int64_t> environments_in(const RunsOfAlgorithms& algorithms) {
  size_t count = 0;
  for (const auto& [algorithm, runs] : algorithms)
    for (const DgResult* run : runs) count = std::max(count, run->evaluations.front().in.size());
  std::vector<int64_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// The names that some run has.
std::vector<std::string> names_in(const RunsOfAlgorithms& algorithms) {
  for (const auto& [algorithm, runs] : algorithms)
    for (const DgResult* run : runs)
      if (!run->environments.empty()) return run->environments;
  return {};
}

std::string cell_text(const std::optional<MeanAndError>& cell) { return cell ? to_text(*cell) : ""; }

std::string table_title(const DgTable& table) {
  return !table.title.empty() ? table.title : cat(dataset_title(table.dataset), ", ", to_text(table.rule));
}

using Escape = std::string (*)(const std::string& text);

// Lines of cells between separators. escape: makes any text one cell.
std::string table_lines(const DgTable& table, const std::string& begin, const std::string& between,
                        const std::string& end, Escape escape) {
  std::string text;
  const auto line = [&](std::vector<std::string> cells) {
    for (std::string& cell : cells) cell = escape(cell);
    text += begin + join(cells, between) + end + "\n";
  };
  std::vector<std::string> header{"algorithm"};
  header.insert(header.end(), table.columns.begin(), table.columns.end());
  header.insert(header.end(), table.fact_columns.begin(), table.fact_columns.end());
  line(header);
  for (const DgTable::Row& row : table.rows) {
    std::vector<std::string> cells{row.algorithm};
    for (const auto& cell : row.cells) cells.push_back(cell_text(cell));
    for (size_t f = 0; f < table.fact_columns.size(); ++f)
      cells.push_back(f < row.facts.size() ? row.facts[f].text : "");
    line(cells);
  }
  return text;
}

std::string markdown_lines(const DgTable& table, Escape escape) {
  const std::string lines = table_lines(table, "| ", " | ", " |", escape);
  const size_t first = lines.find('\n') + 1;
  std::string rule = "|:--|";
  for (size_t i = 0; i < table.columns.size() + table.fact_columns.size(); ++i) rule += "--:|";
  return lines.substr(0, first) + rule + "\n" + lines.substr(first);
}

// Quoted as in RFC 4180 where it must be.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

// A count keeps all its digits.
std::string number_of_fact(double value) {
  return std::floor(value) == value && std::abs(value) < 1e15 ? std::to_string(static_cast<int64_t>(value))
                                                              : cat(value);
}

std::string csv_lines(const DgTable& table) {
  std::string text;
  const std::string selection = table.title.empty() ? to_text(table.rule) : table.title;
  const auto line = [&](const std::string& algorithm, const std::string& column, const std::string& numbers) {
    text += csv_field(dataset_title(table.dataset)) + "," + csv_field(selection) + "," + csv_field(algorithm) + "," +
            csv_field(column) + "," + numbers + "\n";
  };
  for (const DgTable::Row& row : table.rows) {
    for (size_t c = 0; c < row.cells.size(); ++c)
      line(row.algorithm, table.columns[c], row.cells[c] ? cat(row.cells[c]->mean, ",", row.cells[c]->error) : ",");
    for (size_t f = 0; f < row.facts.size(); ++f) {
      const TableFact& fact = row.facts[f];
      line(row.algorithm, table.fact_columns[f],
           (fact.value ? number_of_fact(*fact.value) : "") + "," + (fact.error ? cat(*fact.error) : ""));
    }
  }
  return text;
}

std::string latex_lines(const DgTable& table) {
  return "% " + latex_text(table_title(table)) + "\n\\begin{tabular}{l" +
         std::string(table.columns.size() + table.fact_columns.size(), 'r') + "}\n" +
         table_lines(table, "", " & ", " \\\\", latex_text) + "\\end{tabular}\n";
}

std::string html_lines(const DgTable& table) {
  return "<table>\n<caption>" + escape_html(table_title(table)) + "</caption>\n" +
         table_lines(table, "<tr><td>", "</td><td>", "</td></tr>",
                     [](const std::string& text) { return escape_html(text); }) +
         "</table>\n";
}

}  // namespace

MeanAndError mean_and_error(const std::vector<double>& percent) {
  MeanAndError value;
  const auto count = static_cast<double>(percent.size());
  for (const double x : percent) value.mean += x / count;
  double squares = 0;
  for (const double x : percent) squares += (x - value.mean) * (x - value.mean);
  value.error = std::sqrt(squares / count) / std::sqrt(count);
  return value;
}

std::string to_text(const MeanAndError& value) {
  char text[64];
  if (value.error < 0)
    std::snprintf(text, sizeof text, "%.1f", value.mean);
  else
    std::snprintf(text, sizeof text, "%.1f +/- %.1f", value.mean, value.error);
  return text;
}

TrialAccuracies trial_accuracies(const std::vector<const DgResult*>& runs, SelectionRule rule,
                                 const std::vector<int64_t>& environments) {
  std::map<int64_t, std::vector<const DgResult*>> by_trial;
  for (const DgResult* run : runs) by_trial[run->name.trial_seed].push_back(run);
  TrialAccuracies all;
  for (const auto& [trial, of_trial] : by_trial) {
    const TrialRuns trial_runs(of_trial);
    for (const int64_t environment : environments) {
      const auto accuracy = trial_runs.selected_accuracy(environment, rule);
      all[trial].push_back(accuracy ? std::optional(100 * *accuracy) : std::nullopt);
    }
  }
  return all;
}

std::map<int64_t, double> trial_averages(const TrialAccuracies& trials) {
  std::map<int64_t, double> averages;
  for (const auto& [trial, accuracies] : trials)
    if (const auto average = mean_of_all(accuracies)) averages[trial] = *average;
  return averages;
}

DgTable::Row table_row(const std::string& algorithm, const TrialAccuracies& trials, size_t columns) {
  DgTable::Row row{algorithm, "this run", {}};
  for (size_t t = 0; t + 1 < columns; ++t) {
    std::vector<std::optional<double>> column;
    for (const auto& [trial, accuracies] : trials) column.push_back(accuracies[t]);
    row.cells.push_back(over_trials(column));
  }
  std::vector<std::optional<double>> averages;
  for (const auto& [trial, average] : trial_averages(trials)) averages.emplace_back(average);
  row.cells.push_back(over_trials(averages));
  return row;
}

std::vector<DgTable> dg_tables(const std::vector<DgResult>& results) {
  std::map<std::string, RunsOfAlgorithms> groups;  // by dataset
  for (const DgResult& result : results)
    if (!result.name.single_source) groups[result.name.dataset][result.name.algorithm].push_back(&result);
  std::vector<DgTable> tables;
  for (const SelectionRule rule : selection_rules())
    for (const auto& [dataset, algorithms] : groups) {
      DgTable table{rule, dataset, {}, {}};
      const std::vector<int64_t> environments = environments_in(algorithms);
      for (const auto& [algorithm, runs] : algorithms) {
        const DgTable::Row row =
            table_row(algorithm, trial_accuracies(runs, rule, environments), environments.size() + 1);
        if (std::ranges::none_of(row.cells, [](const auto& cell) { return cell.has_value(); })) continue;
        table.rows.push_back(row);
      }
      if (table.rows.empty()) continue;
      table.columns = environment_titles(dataset, names_in(algorithms), environments.size());
      table.columns.emplace_back("Avg");
      tables.push_back(table);
    }
  return tables;
}

std::vector<DgTable> average_tables(const std::vector<DgTable>& tables) {
  std::vector<DgTable> all;
  for (const SelectionRule rule : selection_rules()) {
    std::map<std::string, std::vector<std::optional<MeanAndError>>> rows;  // by algorithm, a cell per dataset
    DgTable summary{rule, kAverages, {}, {}};
    for (const DgTable& table : tables) {
      if (table.rule != rule) continue;
      summary.columns.push_back(dataset_title(table.dataset));
      for (const DgTable::Row& row : table.rows) {
        rows[row.algorithm].resize(summary.columns.size());
        rows[row.algorithm].back() = row.cells.back();
      }
    }
    if (summary.columns.size() < 2) continue;
    for (auto& [algorithm, cells] : rows) {
      cells.resize(summary.columns.size());
      summary.rows.push_back({algorithm, "this run", with_mean(cells)});
    }
    summary.columns.emplace_back("Avg");
    all.push_back(summary);
  }
  return all;
}

std::vector<std::optional<MeanAndError>> with_mean(std::vector<std::optional<MeanAndError>> cells) {
  std::vector<std::optional<double>> means;
  for (const auto& cell : cells) means.push_back(cell ? std::optional(cell->mean) : std::nullopt);
  const auto mean = mean_of_all(means);
  cells.push_back(mean ? std::optional(MeanAndError{*mean, -1}) : std::nullopt);
  return cells;
}

const std::vector<std::string>& table_format_names() {
  static const std::vector<std::string> names{"text", "markdown", "csv", "latex", "html"};
  return names;
}

TableFormat table_format(const std::string& name) {
  return static_cast<TableFormat>(find_position(name, table_format_names(), "table format"));
}

std::string formatted(const std::vector<DgTable>& tables, TableFormat format) {
  std::string text = format == TableFormat::csv ? "dataset,selection,algorithm,test_env,mean,error\n" : "";
  for (const DgTable& table : tables) {
    if (format == TableFormat::csv) text += csv_lines(table);
    if (format == TableFormat::latex) text += latex_lines(table);
    if (format == TableFormat::html) text += html_lines(table);
    if (format == TableFormat::markdown)
      text += "### " + markdown_text(table_title(table)) + "\n\n" + markdown_lines(table, markdown_text) + "\n";
    if (format == TableFormat::text)
      text += printable(table_title(table)) + "\n" + markdown_lines(table, plain_text) + "\n";
  }
  return text;
}

}  // namespace sparsight
