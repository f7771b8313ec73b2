// DomainBed's tables: for each dataset a row per algorithm and a column per test environment, over trials.
#pragma once

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

struct DgTable {
  SelectionRule rule;
  std::string dataset;
  std::vector<std::string> columns;  // "0", "1", ..., "Avg"
  struct Row {
    std::string algorithm;
    std::string source;  // "this run", or where published numbers are from
    std::vector<std::optional<MeanAndError>> cells;
  };
  std::vector<Row> rows;
};

// One per dataset and rule that some run allows. The average is that over environments in each trial that has all of
// them.
std::vector<DgTable> dg_tables(const std::vector<DgResult>& results);

enum class TableFormat { text, markdown, csv, latex, html };
TableFormat table_format(const std::string& name);  // raises UsageError
const std::vector<std::string>& table_format_names();
std::string formatted(const std::vector<DgTable>& tables, TableFormat format);

}  // namespace sparsight
