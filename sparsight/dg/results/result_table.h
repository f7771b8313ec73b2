// DomainBed's tables: for each dataset a row per algorithm and a column per test environment, over trials.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sparsight/dg/selection.h"

namespace sparsight {

// Percent. error, below 0 if it is not known: the standard deviation over trials (dividing by their number) over the
// root of their number.
struct MeanAndError {
  double mean = 0, error = 0;
};
MeanAndError mean_and_error(const std::vector<double>& percent);
std::string to_text(const MeanAndError& value);  // "85.7 +/- 0.3"

// A cell that is not an accuracy: as shown, and its number for CSV.
struct TableFact {
  std::string text = {};
  std::optional<double> value = {}, error = {};
};

struct DgTable {
  SelectionRule rule;
  std::string dataset;
  std::vector<std::string> columns;  // environment_titles() and "Avg"
  struct Row {
    std::string algorithm;
    std::string source;  // "this run", or where published numbers are from
    std::vector<std::optional<MeanAndError>> cells;
    std::vector<TableFact> facts = {};
  };
  std::vector<Row> rows;
  std::vector<std::string> fact_columns = {};  // after those of accuracies
  std::string title = {};                      // empty: dataset and rule
};

// By trial, then by environment, in percent; null where it is missing.
using TrialAccuracies = std::map<int64_t, std::vector<std::optional<double>>>;
// runs: of one dataset and algorithm. environments: those that are tested.
TrialAccuracies trial_accuracies(const std::vector<const DgResult*>& runs, SelectionRule rule,
                                 const std::vector<int64_t>& environments);
// The average over environments of each trial that has all of them.
std::map<int64_t, double> trial_averages(const TrialAccuracies& trials);
// columns: environments and their average.
DgTable::Row table_row(const std::string& algorithm, const TrialAccuracies& trials, size_t columns);

// One per dataset and rule that some run allows, but for runs of single_source_tables(). The average is that over
// environments in each trial that has all of them.
std::vector<DgTable> dg_tables(const std::vector<DgResult>& results);

// Where there are several datasets, a table per rule with a column for each: the averages of their tables, and the mean
// of these averages where a row has all. Its dataset is kAverages.
inline const std::string kAverages = "averages";
std::vector<DgTable> average_tables(const std::vector<DgTable>& tables);
// The cells of a row, and the mean of their means where none is missing, without an error.
std::vector<std::optional<MeanAndError>> with_mean(std::vector<std::optional<MeanAndError>> cells);

enum class TableFormat { text, markdown, csv, latex, html };
TableFormat table_format(const std::string& name);  // raises UsageError
const std::vector<std::string>& table_format_names();
// Names come from the logs of others: they are escaped where the format gives a character a meaning.
std::string formatted(const std::vector<DgTable>& tables, TableFormat format);

}  // namespace sparsight
