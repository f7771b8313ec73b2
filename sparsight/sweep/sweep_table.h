// What a sweep found: tables, a page and JSON. Settings are compared by their mean validation accuracy over seeds.
// Where no training has a validation split, they keep their order, and are compared with the first one on the test
// split.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sparsight/report/charts/charts.h"
#include "sparsight/report/text_table.h"
#include "sparsight/sweep/sweep.h"

namespace sparsight {

// Percent over the seeds that have the score: "92.10 +- 0.31", the deviation dividing by n - 1; "-" without any.
std::string mean_text(const std::vector<std::optional<double>>& scores);

// Whether any training has a validation accuracy.
bool has_validation(const std::vector<SettingScores>& scores);

// Positions in `scores`: the highest mean validation accuracy first; equal ones in their order, those with fewer seeds
// done after the others, those without an accuracy last.
std::vector<size_t> ranked(const std::vector<SettingScores>& scores);

// One row per setting, in the order of ranked(), with the paired difference to the first one over the seeds that both
// have: the mean and its 95 % interval over seeds (Student's t) and images; none with fewer than two seeds.
Rows sweep_rows(const std::vector<SweepAxis>& axes, const std::vector<SettingScores>& scores);

// {"axes", "compared_by", "settings": [{"settings": {key: value}, "validation": {"mean", "deviation"}, "test",
// "difference", "trials": [...]}]},
// in the order of ranked(); schema in docs/file_formats.md.
Json sweep_json(const std::vector<SweepAxis>& axes, const std::vector<SettingScores>& scores);

// Accuracy of each training by setting; and over each axis whose values are all numbers.
std::vector<Chart> sweep_charts(const std::vector<SweepAxis>& axes, const std::vector<SettingScores>& scores);

// A table of its own on the page: "2 epochs", and its rows.
struct SweepSection {
  std::string title;
  Rows rows;
};
// One HTML file. earlier: rungs before the last one.
std::string sweep_page(const std::string& name, const std::vector<SweepAxis>& axes,
                       const std::vector<SettingScores>& scores, const std::vector<SweepSection>& earlier);

}  // namespace sparsight
