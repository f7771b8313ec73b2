// The records of a run's metrics.jsonl, sorted by kind. Schema: docs/file_formats.md.
//
// A run that was killed may leave a truncated line, and one that was resumed may have written some steps twice: neither
// is an error here. Records are returned in order of step, each (kind, split, weights, step) once; the later line wins.
//
// Memory is bounded, however long the log: what no table or chart shows is not kept, and where the rest takes more than
// kMaxMetricsMemory, the history is thinned.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sparsight/core/json_fields.h"

namespace sparsight {

struct RunMetrics {
  std::vector<Json> train;  // without "layers"
  std::vector<Json> evals;  // "class_expert" only in the last of each (split, weights)
  std::vector<Json> notes;
  Json done;                          // the record that a finished run ends with, or null
  std::vector<std::string> warnings;  // what could not be used, one line each
  std::string damage;                 // the one among them about lines that are damaged; "" of an intact log

  bool empty() const { return train.empty() && evals.empty(); }
};

RunMetrics read_run_metrics(const std::string& path);
RunMetrics sort_metrics(const std::vector<Json>& records);

// The display name of the split that was evaluated: "validation", "test", or "test (= validation)" if the dataset has
// no test split.
std::string part_of_eval(const Json& eval);

// What the records say of the predicted classes: "accuracy", or of multi-label data "precision@1".
struct ScoreName {
  const char *key, *name;  // in a record; on pages
};
ScoreName score_name(const Json& eval);
ScoreName score_name(const RunMetrics& log);  // of all evaluations of a run, which are of one kind

// What distinguishes the evaluations of one course of training: "val/model".
std::string series_name(const Json& eval);

// For each (split, weights) the record with the largest step, in order of first appearance.
std::vector<Json> last_evals(const RunMetrics& log);
// "ema", "ema (the result)" where raw weights are evaluated beside the averaged ones.
std::string weights_of_eval(const Json& eval);
// Whether the record may be the result of its run: raw weights beside averaged ones are not.
bool is_reported(const Json& eval);
// The last reported record of the test split, of the validation split otherwise; of those with expert statistics where
// `with_layers`. Null if there is none.
Json final_eval(const RunMetrics& log, bool with_layers);

}  // namespace sparsight
