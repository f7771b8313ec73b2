// The result of a figure as text: pure functions. Formats: docs/reproduce.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sparsight/reproduce/run_figure.h"

namespace sparsight {

// A table of strings, shown in Markdown and on the HTML page.
struct TextTable {
  std::vector<std::string> header;
  std::vector<bool> right;  // right-aligned (numbers)
  std::vector<std::vector<std::string>> rows;
};

// One row for each row of the result: axes, then "95.2 +- 0.9" for each measure, with the paper's value and the
// difference if there is one.
TextTable result_table_of(const FigureOutcome& outcome);
// Claim, measured, "holds" | "does not hold" | "undecided".
TextTable claim_table(const std::vector<Claim>& claims);

// "+- is the standard deviation (dividing by n) over seeds 0, 1, 2", "" if nothing is repeated.
std::string deviation_note(const ResultTable& table);
// "synthetic substitute data: ...", "" for real data.
std::string substitute_note(const FigureOutcome& outcome);
std::string failure_text(const FailedJob& job);

std::string value_text(const Json& axis_value);
std::string number_text(double value, int decimals);  // "95.2", "2.007e+15"; "0.00012" for what would round to 0.0

std::string markdown_table(const TextTable& table);
std::string result_csv(const FigureOutcome& outcome);
Json result_json(const FigureOutcome& outcome);
// Also printed on the terminal.
std::string result_markdown(const FigureOutcome& outcome);

}  // namespace sparsight
