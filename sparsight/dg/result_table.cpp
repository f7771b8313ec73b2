#include "sparsight/dg/result_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"

namespace sparsight {
namespace {

// accuracy[trial][environment], in percent; null where it is missing.
using TrialAccuracies = std::vector<std::vector<std::optional<double>>>;

TrialAccuracies accuracies_of(const std::vector<DgResult>& runs, SelectionRule rule) {
  std::map<int64_t, std::vector<DgResult>> by_trial;
  size_t environments = 0;
  for (const DgResult& run : runs) {
    by_trial[run.name.trial_seed].push_back(run);
    environments = std::max(environments, run.evaluations.front().in.size());
  }
  TrialAccuracies all;
  for (const auto& [trial, of_trial] : by_trial) {
    std::vector<std::optional<double>> row;
    for (size_t t = 0; t < environments; ++t) {
      const auto accuracy = selected_accuracy(of_trial, static_cast<int64_t>(t), rule);
      row.push_back(accuracy ? std::optional(100 * *accuracy) : std::nullopt);
    }
    all.push_back(row);
  }
  return all;
}

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

DgTable::Row row_of(const std::string& algorithm, const TrialAccuracies& trials) {
  DgTable::Row row{algorithm, "this run", {}};
  std::vector<std::optional<double>> averages;
  for (const auto& trial : trials) averages.push_back(mean_of_all(trial));
  const size_t environments = trials.empty() ? 0 : trials.front().size();
  for (size_t t = 0; t < environments; ++t) {
    std::vector<std::optional<double>> column;
    for (const auto& trial : trials) column.push_back(trial[t]);
    row.cells.push_back(over_trials(column));
  }
  row.cells.push_back(over_trials(averages));
  return row;
}

std::string cell_text(const std::optional<MeanAndError>& cell) { return cell ? to_text(*cell) : "n/a"; }

std::string title_of(const DgTable& table) { return cat(table.dataset, ", ", to_text(table.rule)); }

// Lines of cells between separators.
std::string lines_of(const DgTable& table, const std::string& begin, const std::string& between,
                     const std::string& end) {
  std::string text;
  const auto line = [&](std::vector<std::string> cells) { text += begin + join(cells, between) + end + "\n"; };
  std::vector<std::string> header{"algorithm"};
  header.insert(header.end(), table.columns.begin(), table.columns.end());
  line(header);
  for (const DgTable::Row& row : table.rows) {
    std::vector<std::string> cells{row.algorithm};
    for (const auto& cell : row.cells) cells.push_back(cell_text(cell));
    line(cells);
  }
  return text;
}

std::string markdown_lines(const DgTable& table) {
  const std::string lines = lines_of(table, "| ", " | ", " |");
  const size_t first = lines.find('\n') + 1;
  std::string rule = "|:--|";
  for (size_t i = 0; i < table.columns.size(); ++i) rule += "--:|";
  return lines.substr(0, first) + rule + "\n" + lines.substr(first);
}

std::string csv_lines(const DgTable& table) {
  std::string text;
  for (const DgTable::Row& row : table.rows)
    for (size_t c = 0; c < row.cells.size(); ++c)
      text += cat(table.dataset, ",", to_text(table.rule), ",", row.algorithm, ",", table.columns[c], ",",
                  row.cells[c] ? cat(row.cells[c]->mean, ",", row.cells[c]->error) : ",", "\n");
  return text;
}

std::string latex_lines(const DgTable& table) {
  std::string text = "% " + title_of(table) + "\n\\begin{tabular}{l" + std::string(table.columns.size(), 'r') + "}\n";
  std::string rows = lines_of(table, "", " & ", " \\\\");
  for (size_t at = 0; (at = rows.find("+/-", at)) != std::string::npos;) rows.replace(at, 3, "$\\pm$");
  for (size_t at = 0; (at = rows.find('_', at)) != std::string::npos; at += 2) rows.replace(at, 1, "\\_");
  for (size_t at = 0; (at = rows.find('%', at)) != std::string::npos; at += 2) rows.replace(at, 1, "\\%");
  return text + rows + "\\end{tabular}\n";
}

std::string html_lines(const DgTable& table) {
  return "<table>\n<caption>" + title_of(table) + "</caption>\n" +
         lines_of(table, "<tr><td>", "</td><td>", "</td></tr>") + "</table>\n";
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

std::vector<DgTable> dg_tables(const std::vector<DgResult>& results) {
  std::map<std::string, std::map<std::string, std::vector<DgResult>>> groups;  // dataset, algorithm
  for (const DgResult& result : results) groups[result.name.dataset][result.name.algorithm].push_back(result);
  std::vector<DgTable> tables;
  for (const SelectionRule rule : selection_rules())
    for (const auto& [dataset, algorithms] : groups) {
      DgTable table{rule, dataset, {}, {}};
      for (const auto& [algorithm, runs] : algorithms) {
        const DgTable::Row row = row_of(algorithm, accuracies_of(runs, rule));
        if (std::ranges::none_of(row.cells, [](const auto& cell) { return cell.has_value(); })) continue;
        table.rows.push_back(row);
      }
      if (table.rows.empty()) continue;
      for (size_t c = 0; c + 1 < table.rows.front().cells.size(); ++c) table.columns.push_back(std::to_string(c));
      table.columns.emplace_back("Avg");
      tables.push_back(table);
    }
  return tables;
}

const std::vector<std::string>& table_format_names() {
  static const std::vector<std::string> names{"text", "markdown", "csv", "latex", "html"};
  return names;
}

TableFormat table_format(const std::string& name) {
  return static_cast<TableFormat>(position_of(name, table_format_names(), "table format"));
}

std::string formatted(const std::vector<DgTable>& tables, TableFormat format) {
  std::string text = format == TableFormat::csv ? "dataset,selection,algorithm,test_env,mean,error\n" : "";
  for (const DgTable& table : tables) {
    if (format == TableFormat::csv) text += csv_lines(table);
    if (format == TableFormat::latex) text += latex_lines(table);
    if (format == TableFormat::html) text += html_lines(table);
    if (format == TableFormat::markdown) text += "### " + title_of(table) + "\n\n" + markdown_lines(table) + "\n";
    if (format == TableFormat::text) text += title_of(table) + "\n" + markdown_lines(table) + "\n";
  }
  return text;
}

}  // namespace sparsight
