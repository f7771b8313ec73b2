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
TextTable to_result_table(const FigureOutcome& outcome);
// Claim, measured, test, verdict_text().
TextTable claim_table(const std::vector<Claim>& claims);
// "holds", "does not hold", "undecided at 5 seeds", "withheld at scale smoke".
std::string verdict_text(const Claim& claim);

// "+- is the standard deviation (dividing by n) over seeds 0, 1, 2", "" if nothing is repeated.
std::string deviation_note(const ResultTable& table);
// "synthetic substitute data: ..." or "custom data: ..."; "" for data that is shown beside the paper's numbers.
std::string substitute_note(const FigureOutcome& outcome);
// The notes of the figure, then those that follow from the settings of the run.
std::vector<std::string> outcome_notes(const FigureOutcome& outcome);
// "Scale small; trials=20; data: mnist as published, fingerprint 0123456789abcdef"
std::string run_note(const FigureOutcome& outcome);
std::string failure_text(const FailedJob& job);

std::string value_text(const Json& axis_value);
std::string number_text(double value, int decimals);  // "95.2", "2.007e+15"; "0.00012" for what would round to 0.0

// A line of fields, quoted as in RFC 4180; a number, "" for null.
std::string csv_line(const std::vector<std::string>& fields);
std::string csv_number(std::optional<double> value);

std::string markdown_table(const TextTable& table);
std::string result_csv(const FigureOutcome& outcome);
Json result_json(const FigureOutcome& outcome);
// Also printed on the terminal.
std::string result_markdown(const FigureOutcome& outcome);

}  // namespace sparsight
