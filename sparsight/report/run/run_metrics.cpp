#include "sparsight/report/run/run_metrics.h"

#include <map>

#include "sparsight/core/error.h"
#include "sparsight/core/json_text.h"
#include "sparsight/io/metrics_log.h"
#include "sparsight/report/format.h"

namespace sparsight {

namespace {

constexpr size_t kMaxSeries = 16;  // (split, weights); a run has up to six
constexpr size_t kMaxNotes = 1000;
constexpr size_t kMaxNoteBytes = size_t{1} << 16;
constexpr int kMaxRounds = 32;

double record_step(const Json& record) { return number(record, "step").value_or(0); }

// Sorts records as they come, each in constant time.
class MetricsSorter {
 public:
  void add(Json record) {
    const std::string kind = text(record, "kind");
    if (kind == "done") {
      log_.done = std::move(record);
    } else if (kind == "note") {
      if (log_.notes.size() < kMaxNotes && json_memory(record) < kMaxNoteBytes)
        log_.notes.push_back(std::move(record));
      else
        ++left_out_;
    } else if (!number(record, "step") || (kind != "train" && kind != "eval")) {
      ++left_out_;
    } else if (kind == "train") {
      add_train(std::move(record));
    } else {
      add_eval(std::move(record));
    }
    if (memory_ > kMaxMetricsMemory) thin();
  }

  RunMetrics finish() {
    for (Json& record : train_.records) log_.train.push_back(std::move(record));
    for (Json& record : evals_.records)
      if (!record.is_null()) log_.evals.push_back(std::move(record));
    if (left_out_ > 0)
      log_.warnings.push_back(cat("left out ", left_out_, left_out_ == 1 ? " record" : " records",
                                  " of an unknown kind, without a step or beyond what is shown"));
    if (thinned_) log_.warnings.push_back("the log is very long: curves show a part of its records");
    return std::move(log_);
  }

 private:
  // Records and the memory that each takes.
  struct Sized {
    std::vector<Json> records;
    std::vector<size_t> memory;
  };

  void keep(Sized& to, Json record) {
    to.memory.push_back(json_memory(record));
    memory_ += to.memory.back();
    to.records.push_back(std::move(record));
  }

  // After a change of record i.
  void weigh_again(Sized& in, size_t i) {
    memory_ -= in.memory[i];
    in.memory[i] = json_memory(in.records[i]);
    memory_ += in.memory[i];
  }

  void drop_last(Sized& from) {
    memory_ -= from.memory.back();
    from.memory.pop_back();
    from.records.pop_back();
  }

  void drop_eval(size_t i) {
    evals_.records[i] = nullptr;
    weigh_again(evals_, i);
  }

  void add_train(Json record) {
    while (!train_.records.empty() && record_step(train_.records.back()) >= record_step(record)) drop_last(train_);
    if (record_step(record) > record_step(log_.done)) log_.done = Json();  // a finished run that was extended
    record.erase("layers");
    keep(train_, std::move(record));
  }

  // The evaluations of a series have increasing steps, so those that the new one replaces are its last ones.
  void add_eval(Json record) {
    const std::string name = series_name(record);
    if (!series_.contains(name) && series_.size() == kMaxSeries) {
      ++left_out_;
      return;
    }
    std::vector<size_t>& places = series_[name];
    for (; !places.empty() && record_step(evals_.records[places.back()]) >= record_step(record); places.pop_back())
      drop_eval(places.back());
    if (!places.empty() && evals_.records[places.back()].erase("class_expert") > 0) weigh_again(evals_, places.back());
    places.push_back(evals_.records.size());
    keep(evals_, std::move(record));
  }

  // Brings the memory down to a half, so that the work is linear in the length of the log. What is shown least goes
  // first; the last evaluation of each series stays.
  void thin() {
    thinned_ = true;
    for (int round = 0; memory_ > kMaxMetricsMemory / 2; ++round) {
      if (round == kMaxRounds) fail("the log has records of more than ", kMaxMetricsMemory, " bytes; it is damaged");
      halve_train();
      for (auto& [name, places] : series_) {
        halve_layers(places);
        if (round > 4) halve_evals(places);
      }
    }
  }

  void halve_train() {
    Sized half;
    for (size_t i = 0; i < train_.records.size(); ++i) {
      memory_ -= train_.memory[i];
      if (i % 2 != train_.records.size() % 2) keep(half, std::move(train_.records[i]));
    }
    train_ = std::move(half);
  }

  // Takes the expert statistics from every second evaluation that has them, but for the last.
  void halve_layers(const std::vector<size_t>& places) {
    bool odd = false;
    for (size_t i = 0; i + 1 < places.size(); ++i)
      if (Json& eval = evals_.records[places[i]]; eval.contains("layers") && (odd = !odd)) {
        eval.erase("layers");
        weigh_again(evals_, places[i]);
      }
  }

  void halve_evals(std::vector<size_t>& places) {
    std::vector<size_t> half;
    for (size_t i = 0; i < places.size(); ++i)
      if (i % 2 != places.size() % 2)
        half.push_back(places[i]);
      else
        drop_eval(places[i]);
    places = std::move(half);
  }

  RunMetrics log_;
  Sized train_, evals_;  // a null evaluation was replaced by a later one
  std::map<std::string, std::vector<size_t>> series_;
  size_t memory_ = 0;
  int64_t left_out_ = 0;
  bool thinned_ = false;
};

}  // namespace

std::string series_name(const Json& eval) { return text(eval, "split") + "/" + text(eval, "weights"); }

RunMetrics read_run_metrics(const std::string& path) {
  MetricsSorter sorter;
  std::string damage = for_each_readable_line(path, [&](Json object) { sorter.add(std::move(object)); });
  RunMetrics log = sorter.finish();
  if (!damage.empty()) log.warnings.push_back(damage);
  log.damage = std::move(damage);
  return log;
}

RunMetrics sort_metrics(const std::vector<Json>& records) {
  MetricsSorter sorter;
  for (const Json& record : records) sorter.add(record);
  return sorter.finish();
}

std::string part_of_eval(const Json& eval) {
  const std::string part = split_name(text(eval, "split")), same = split_name(text(eval, "same_as"));
  return same.empty() ? part : part + " (= " + same + ")";
}

ScoreName score_name(const Json& eval) {
  if (eval.is_object() && eval.contains("precision_at_1")) return {"precision_at_1", "precision@1"};
  return {"accuracy", "accuracy"};
}

ScoreName score_name(const RunMetrics& log) {
  const std::vector<Json>& records = log.evals.empty() ? log.train : log.evals;
  return score_name(records.empty() ? Json() : records.back());
}

std::vector<Json> last_evals(const RunMetrics& log) {
  std::map<std::string, size_t> places;
  std::vector<const Json*> last;
  for (const Json& eval : log.evals) {
    const auto [entry, fresh] = places.try_emplace(series_name(eval), last.size());
    if (fresh)
      last.push_back(&eval);
    else
      last[entry->second] = &eval;
  }
  std::vector<Json> records;
  for (const Json* eval : last) records.push_back(*eval);
  return records;
}

std::string weights_of_eval(const Json& eval) {
  return text(eval, "weights") + (member(eval, "reported") == true ? " (the result)" : "");
}

bool is_reported(const Json& eval) { return member(eval, "reported") != false; }

Json final_eval(const RunMetrics& log, bool with_layers) {
  static const Json nothing;
  const Json* best = &nothing;
  for (const Json& eval : log.evals) {
    if (!is_reported(eval)) continue;
    if (with_layers && (!member(eval, "layers").is_array() || member(eval, "layers").empty())) continue;
    if (text(*best, "split") == "test" && text(eval, "split") != "test") continue;
    best = &eval;
  }
  return *best;
}

}  // namespace sparsight
