#include "sparsight/report/run/overlaid_runs.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "sparsight/core/error.h"
#include "sparsight/core/limits.h"
#include "sparsight/core/printable.h"
#include "sparsight/core/toml.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/report/format.h"
#include "sparsight/report/run/read_explanation.h"
#include "sparsight/report/run/run_comparison.h"
#include "sparsight/report/run/run_file.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxSettingBytes = 300;  // of a value on the page; pipelines of transforms are long

void check_given_runs(const std::vector<std::string>& paths) {
  if (paths.size() < 2 || paths.size() > kMaxOverlaidRuns)
    fail_usage("two to ", kMaxOverlaidRuns, " runs go on one page, got ", paths.size(),
               paths.size() < 2 ? "; name another run" : "; name fewer, or see `sparsight sweep`");
  std::set<std::string> seen;
  for (const std::string& path : paths) {
    RunFolder::open(path);
    if (!seen.insert(fs::weakly_canonical(path).string()).second)
      fail_usage("the run ", printable(path), " is given twice; name each run once");
  }
}

// Nothing for a run that has nothing to show; `warnings` then name it.
std::optional<OverlaidRun> read_overlaid_run(const std::string& path, std::vector<std::string>& warnings) {
  const RunFolder folder = RunFolder::open(path);
  const std::string shown = printable(path);
  std::error_code none;
  if (!fs::is_regular_file(folder.metrics(), none)) {
    warnings.push_back(shown + " is left out: it has no metrics.jsonl yet");
    return std::nullopt;
  }
  OverlaidRun run;
  std::vector<std::string> problems;
  attempt(problems, [&] { run.log = read_run_metrics(folder.metrics()); });
  if (problems.empty() && run.log.empty()) problems.push_back("its metrics have no training or evaluation records");
  if (!problems.empty()) {
    warnings.push_back(shown + " is left out: " + problems.front());
    return std::nullopt;
  }
  if (!run.log.damage.empty()) problems.push_back(run.log.damage);
  attempt(problems,
          [&] { run.config = parse_toml(read_run_file(path, "config.toml", kMaxConfigBytes), folder.config()).tree; });
  for (const std::string& problem : problems) warnings.push_back(shown + ": " + printable(problem));
  const fs::path whole = fs::weakly_canonical(path);
  run.name = printable(whole.filename().string());
  return run;
}

// Names that tell the runs apart: jobs of a sweep are all in folders "run".
void name_runs(std::vector<OverlaidRun>& runs, const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (const OverlaidRun& run : runs) names.push_back(run.name);
  for (size_t i = 0; i < runs.size(); ++i)
    if (std::ranges::count(names, names[i]) > 1) runs[i].name = printable(paths[i]);
}

std::string setting_text(const Json& value) {
  std::string shown = value.is_string() ? value.get<std::string>() : json_text(value);
  if (shown.size() > kMaxSettingBytes) shown = shown.substr(0, kMaxSettingBytes) + "...";
  return shown.empty() ? "\"\"" : printable(shown);
}

// The names of all settings of all runs: those of the first run by name, then what each later one adds.
std::vector<std::pair<std::string, std::string>> all_settings(const std::vector<OverlaidRun>& runs) {
  std::vector<std::pair<std::string, std::string>> names;
  std::set<std::pair<std::string, std::string>> seen;
  for (const OverlaidRun& run : runs)
    if (run.config.is_object())
      for (const auto& [section, settings] : run.config.items())
        if (settings.is_object())
          for (const auto& [key, value] : settings.items())
            if (seen.emplace(section, key).second) names.emplace_back(section, key);
  return names;
}

}  // namespace

OverlaidRuns read_overlaid_runs(const std::vector<std::string>& paths) {
  check_given_runs(paths);
  OverlaidRuns overlaid;
  std::vector<std::string> kept;
  for (const std::string& path : paths)
    if (std::optional<OverlaidRun> run = read_overlaid_run(path, overlaid.warnings)) {
      overlaid.runs.push_back(std::move(*run));
      kept.push_back(path);
    }
  if (overlaid.runs.size() < 2)
    fail("fewer than two runs have something to show: ", overlaid.warnings.front(), "; name others");
  name_runs(overlaid.runs, kept);
  return overlaid;
}

Rows overlaid_results(const std::vector<OverlaidRun>& runs) {
  std::vector<ComparedRun> compared;
  for (const OverlaidRun& run : runs) compared.push_back({run.name, run.log});
  Rows rows = comparison_rows(compared);
  constexpr std::ptrdiff_t kAfterInterval = 4;
  rows[0].insert(rows[0].begin() + kAfterInterval, {std::string("loss"), std::string("steps")});
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto loss = number(final_eval(runs[i].log, false), "loss");
    double steps = number(runs[i].log.done, "step").value_or(0);
    for (const auto* records : {&runs[i].log.train, &runs[i].log.evals})
      if (!records->empty()) steps = std::max(steps, number(records->back(), "step").value_or(0));
    rows[i + 1].insert(rows[i + 1].begin() + kAfterInterval,
                       {loss ? fixed(*loss, 4) : "-", steps < 1e15 ? grouped(static_cast<int64_t>(steps)) : "-"});
  }
  return rows;
}

Rows differing_settings(const std::vector<OverlaidRun>& runs) {
  Rows rows{{"setting"}};
  for (const OverlaidRun& run : runs) rows[0].push_back(run.name);
  for (const auto& [section, key] : all_settings(runs)) {
    std::vector<const Json*> values;
    bool differ = false;
    const Json* first = nullptr;
    for (const OverlaidRun& run : runs) {
      values.push_back(&member(member(run.config, section), key));
      if (!run.config.is_object()) continue;
      if (!first) first = values.back();
      differ = differ || *values.back() != *first;
    }
    if (!differ) continue;
    if (rows.size() > kMaxDifferingSettings) break;
    rows.push_back({printable(section + "." + key)});
    for (const Json* value : values) rows.back().push_back(value->is_null() ? "-" : setting_text(*value));
  }
  return rows;
}

}  // namespace sparsight
