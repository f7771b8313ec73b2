#include "sparsight/report/run_metrics.h"

#include "sparsight/io/metrics_log.h"
#include "sparsight/report/format.h"

namespace sparsight {

namespace {

double step_of(const Json& record) { return number(record, "step").value_or(0); }

std::string series_of(const Json& eval) { return text(eval, "split") + "/" + text(eval, "weights"); }

}  // namespace

void RunMetrics::add(const Json& record) {
  const std::string kind = text(record, "kind");
  if (kind == "note") {
    notes.push_back(record);
  } else if (kind == "done") {
    done = record;
  } else if (!number(record, "step") || (kind != "train" && kind != "eval")) {
    warnings.push_back("ignored a record without a step or of an unknown kind");
  } else if (kind == "train") {
    while (!train.empty() && step_of(train.back()) >= step_of(record)) train.pop_back();
    train.push_back(record);
  } else {
    std::erase_if(evals, [&](const Json& earlier) {
      return series_of(earlier) == series_of(record) && step_of(earlier) >= step_of(record);
    });
    evals.push_back(record);
  }
}

RunMetrics parse_metrics(const std::string& jsonl) {
  const ReadableMetrics metrics = readable_metrics(jsonl);
  RunMetrics log = sort_metrics(metrics.lines);
  if (!metrics.warning.empty()) log.warnings.push_back(metrics.warning);
  return log;
}

RunMetrics sort_metrics(const std::vector<Json>& records) {
  RunMetrics log;
  for (const Json& record : records) log.add(record);
  return log;
}

std::string part_of_eval(const Json& eval) {
  const std::string part = split_name(text(eval, "split")), same = split_name(text(eval, "same_as"));
  return same.empty() ? part : part + " (= " + same + ")";
}

std::vector<Json> last_evals(const RunMetrics& log) {
  std::vector<Json> last;
  for (const Json& eval : log.evals) {
    bool known = false;
    for (Json& entry : last)
      if (series_of(entry) == series_of(eval)) entry = eval, known = true;
    if (!known) last.push_back(eval);
  }
  return last;
}

Json final_eval(const RunMetrics& log, bool with_layers) {
  Json best;
  for (const Json& eval : log.evals) {
    if (with_layers && (!member(eval, "layers").is_array() || member(eval, "layers").empty())) continue;
    if (text(best, "split") == "test" && text(eval, "split") != "test") continue;
    best = eval;
  }
  return best;
}

}  // namespace sparsight
