#include "sparsight/report/run/run_comparison.h"

#include <cmath>
#include <filesystem>

#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/eval/statistics.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/report/format.h"

namespace sparsight {
namespace {

// "97.62 to 98.71"
std::string interval_text(const Json& eval) {
  const auto accuracy = number(eval, score_name(eval).key), images = number(eval, "images");
  if (!accuracy || !images || *accuracy < 0 || *accuracy > 1 || *images < 1 || *images > 1e15) return "-";
  const Interval interval = wilson_interval(std::llround(*accuracy * *images), std::llround(*images));
  return fixed(100 * interval.low, 2) + " to " + fixed(100 * interval.high, 2);
}

}  // namespace

ComparedRun read_compared_run(const std::string& path) {
  const RunFolder folder = RunFolder::open(path);
  std::filesystem::path name = std::filesystem::absolute(path).lexically_normal();
  if (name.filename().empty()) name = name.parent_path();
  return {printable(name.filename().string()), read_run_metrics(folder.metrics())};
}

Rows comparison_rows(const std::vector<ComparedRun>& runs) {
  bool any_several = false, any_one = false;
  for (const ComparedRun& run : runs)
    (score_name(run.log).name == std::string("accuracy") ? any_one : any_several) = true;
  const char* score = !any_several ? "accuracy" : any_one ? "accuracy or precision@1" : "precision@1";
  Rows rows = {{"run", "split", score, "95 % CI", "parameters", "active", "multiply-adds per image", "training time"}};
  for (const ComparedRun& run : runs) {
    const Json eval = final_eval(run.log, false);
    const auto seconds = number(run.log.done, "seconds");
    const std::string part = part_of_eval(eval);
    rows.push_back({run.name, part.empty() ? "-" : part, percent(number(eval, score_name(eval).key)),
                    interval_text(eval), with_prefix(number(run.log.done, "parameters")),
                    with_prefix(number(run.log.done, "active_parameters")),
                    with_prefix(number(run.log.done, "multiply_adds")), seconds ? duration(*seconds) : "-"});
  }
  return rows;
}

Rows compared_with(const std::string& path, const std::vector<std::string>& baselines) {
  if (baselines.empty()) return {};
  std::vector<ComparedRun> runs{read_compared_run(path)};
  for (const std::string& baseline : baselines) {
    runs.push_back(read_compared_run(baseline));
    if (const std::string& damage = runs.back().log.damage; !damage.empty()) log_warning(baseline, ": ", damage);
  }
  return comparison_rows(runs);
}

}  // namespace sparsight
