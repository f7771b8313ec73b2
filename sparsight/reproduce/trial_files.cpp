#include "sparsight/reproduce/trial_files.h"

#include <nlohmann/json.hpp>

#include "sparsight/io/checked_json.h"
#include "sparsight/reproduce/result_text.h"

namespace sparsight {

std::string trials_csv(const FigureOutcome& outcome) {
  const ResultTable& table = outcome.table;
  std::vector<std::string> header = table.axes;
  header.push_back("seed");
  for (const Measure& measure : table.measures) header.push_back(measure.key);
  std::string text = csv_line(header);
  for (const ResultRow& row : table.rows)
    for (const Trial& trial : row.trials) {
      std::vector<std::string> fields;
      for (const auto& [axis, value] : row.settings.items()) fields.push_back(value_text(value));
      fields.push_back(std::to_string(trial.seed));
      for (const auto& value : trial.values) fields.push_back(csv_number(value));
      text += csv_line(fields);
    }
  return text;
}

std::string trials_jsonl(const FigureOutcome& outcome) {
  std::string text;
  for (const FinishedJob& job : outcome.finished)
    text += checked_json_line({{"settings", job.settings}, {"result", job.result}});
  return text;
}

}  // namespace sparsight
