#include "sparsight/dg/results/results.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/dg/titles.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/checked_json.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr size_t kMaxResultBytes = size_t{256} << 20;
constexpr int64_t kMaxEnvironments = 1'000'000;
constexpr size_t kShownDigits = 8;  // of a fingerprint

const ordered_json& member(const ordered_json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) fail("a line has no \"", key, "\"");
  return object.at(key);
}

// A whole number of at least 0, which logs may write as a decimal: "300.0".
int64_t read_count(const ordered_json& object, const char* key) {
  constexpr double kMaxCounted = 1e18;
  const ordered_json& value = member(object, key);
  const double number = value.is_number() ? value.get<double>() : -1;
  if (!(number >= 0 && number <= kMaxCounted && std::floor(number) == number))
    fail("\"", key, "\" must be a whole number of at least 0", value.is_number() ? "; got " + value.dump() : "");
  return value.get<int64_t>();
}

std::string read_text(const ordered_json& object, const char* key) {
  const ordered_json& value = member(object, key);
  if (!value.is_string()) fail("\"", key, "\" must be a string");
  return value.get<std::string>();
}

double read_accuracy(const std::string& key, const ordered_json& value) {
  if (!value.is_number() || !(value.get<double>() >= 0 && value.get<double>() <= 1))
    fail("\"", key, "\" must be an accuracy of 0 to 1");
  return value.get<double>();
}

DgRunName read_run_name(const ordered_json& args) {
  DgRunName name{comparable_name(read_text(args, "dataset")),
                 read_text(args, "algorithm"),
                 {},
                 read_count(args, "trial_seed"),
                 read_count(args, "hparams_seed"),
                 args.contains("single_source") && args.at("single_source") == true};
  const std::string variation = args.contains("variation") ? ", " + read_text(args, "variation") : "";
  if (args.contains("model")) name.algorithm += " (" + read_text(args, "model") + variation + ")";
  const ordered_json& environments = member(args, "test_envs");
  if (!environments.is_array()) fail("\"test_envs\" must be a list");
  for (const ordered_json& environment : environments) {
    const bool fits = environment.is_number_integer() && environment >= 0 && environment <= kMaxEnvironments;
    if (!fits) fail("\"test_envs\" must be a list of whole numbers of at least 0; it has ", environment.dump());
    name.test_envs.push_back(environment.get<int64_t>());
  }
  std::ranges::sort(name.test_envs);
  if (const auto twice = std::ranges::adjacent_find(name.test_envs); twice != name.test_envs.end())
    fail("\"test_envs\" names ", *twice, " twice");
  return name;
}

// A search in the object for every key would take a time that grows with the square of the environments.
DgEvaluation read_evaluation(const ordered_json& line) {
  std::unordered_map<std::string_view, const ordered_json*> values;
  for (const auto& [key, value] : line.items()) values.emplace(key, &value);
  const auto accuracy = [&](const std::string& key) {
    const auto found = values.find(key);
    if (found == values.end()) fail("a line has no \"", key, "\"");
    return read_accuracy(key, *found->second);
  };
  const bool has_result = line.contains("result_weights") && !line.at("result_weights").is_null();
  DgEvaluation evaluation{has_result ? kResultStep : read_count(line, "step"), {}, {}};
  for (size_t e = 0; values.contains(cat("env", e, "_in_acc")); ++e) {
    evaluation.in.push_back(accuracy(cat("env", e, "_in_acc")));
    evaluation.out.push_back(accuracy(cat("env", e, "_out_acc")));
  }
  if (evaluation.in.empty()) fail("a line has no \"env0_in_acc\"");
  return evaluation;
}

bool is_result(const DgEvaluation& evaluation) { return evaluation.step == kResultStep; }

std::optional<DgCost> read_cost(const ordered_json& line) {
  if (!line.contains("cost") || line.at("cost").is_null()) return std::nullopt;
  const ordered_json& cost = line.at("cost");
  return DgCost{read_count(cost, "parameters"), read_count(cost, "active_parameters"),
                read_count(cost, "multiply_adds")};
}

// A number of at least 0, where the line has it.
std::optional<double> measured_in(const ordered_json& line, const char* key) {
  if (!line.contains(key) || line.at(key).is_null()) return std::nullopt;
  const ordered_json& value = line.at(key);
  const double number = value.is_number() ? value.get<double>() : -1;
  if (!(number >= 0 && number <= 1e15)) fail("\"", key, "\" must be a number of at least 0");
  return number;
}

// DomainBed writes a memory of 0 without a GPU.
void raise_to(std::optional<double>& highest, const std::optional<double>& value) {
  if (value && *value > 0) highest = std::max(highest.value_or(0), *value);
}

// Means over updates and over evaluated images. lines: by step. Those of DomainBed are of the steps 0, 300, 600, ...:
// 1 update, then 300 each.
DgSpeed speed_of_lines(const std::vector<const ordered_json*>& lines) {
  DgSpeed speed;
  double steps = 0, seconds = 0, rated = 0, images = 0, evaluations = 0, rates = 0;
  int64_t before = -1;
  for (const ordered_json* line : lines) {
    const int64_t step = read_count(*line, "step");
    const auto updates = static_cast<double>(step - before);
    before = step;
    if (const auto time = measured_in(*line, "step_time")) {
      steps += updates, seconds += updates * *time;
      if (const auto rate = measured_in(*line, "images_per_s"))
        rated += updates * *time, images += updates * *time * *rate;
    }
    if (const auto rate = measured_in(*line, "eval_images_per_s")) ++evaluations, rates += *rate;
    raise_to(speed.peak_gb, measured_in(*line, "mem_gb"));
    raise_to(speed.evaluation_peak_gb, measured_in(*line, "eval_mem_gb"));
  }
  if (steps > 0) speed.step_seconds = seconds / steps;
  if (rated > 0) speed.images_per_s = images / rated;
  if (evaluations > 0) speed.evaluation_images_per_s = rates / evaluations;
  return speed;
}

std::vector<ordered_json> read_lines(const std::string& file) {
  std::istringstream text(read_file(file, kMaxResultBytes));
  std::vector<ordered_json> lines;
  int64_t number = 0;
  for (std::string line, problem; std::getline(text, line);) {
    ++number;
    if (line.empty()) continue;
    auto object = try_parse_checked_object(line, problem);
    if (!object) fail("line ", number, " ", problem);
    lines.push_back(std::move(*object));
  }
  return lines;
}

// What DomainBed's own logs do not have.
void add_origin(DgResult& result, const ordered_json& args) {
  if (args.contains("settings") && args.at("settings").is_object()) result.settings = args.at("settings");
  if (args.contains("data")) result.data = read_text(args, "data");
  if (!args.contains("environments")) return;
  for (const ordered_json& name : args.at("environments")) {
    if (!name.is_string()) fail("\"environments\" must be a list of strings");
    result.environments.push_back(name.get<std::string>());
  }
}

// Which settings differ between runs.
class SettingDifferences {
 public:
  void add(const ordered_json& settings) {
    ++runs_;
    for (const auto& [key, value] : settings.items()) {
      auto [seen, is_new] = seen_.try_emplace(key, Seen{value, 0, false});
      ++seen->second.runs;
      seen->second.differs = seen->second.differs || (!is_new && seen->second.first != value);
    }
  }

  // ", optimizer.lr=0.01" of those that do.
  std::string text(const ordered_json& settings) const {
    std::string text;
    for (const auto& [key, value] : settings.items())
      if (const Seen& seen = seen_.at(key); seen.differs || seen.runs < runs_)
        text += cat(", ", key, "=", value.is_string() ? value.get<std::string>() : value.dump());
    return text;
  }

 private:
  struct Seen {
    ordered_json first;
    int64_t runs = 0;
    bool differs = false;
  };
  std::map<std::string, Seen> seen_;
  int64_t runs_ = 0;
};

void tell_data_apart(std::vector<DgResult>& results) {
  std::map<std::string, std::set<std::string>> data;  // by dataset
  for (const DgResult& result : results) data[result.name.dataset].insert(result.data);
  for (DgResult& result : results)
    if (data[result.name.dataset].size() > 1 && !result.data.empty())
      result.name.dataset += cat(" (data ", result.data.substr(0, kShownDigits), ")");
}

void tell_settings_apart(std::vector<DgResult>& results) {
  std::map<std::pair<std::string, std::string>, SettingDifferences> differences;  // by dataset and algorithm
  const auto of = [&](const DgResult& result) -> auto& {
    return differences[{result.name.dataset, result.name.algorithm}];
  };
  for (const DgResult& result : results) of(result).add(result.settings);
  std::vector<std::string> names;
  for (const DgResult& result : results) {
    const std::string differs = of(result).text(result.settings);
    std::string name = result.name.algorithm;
    if (name.ends_with(')'))
      name.insert(name.size() - 1, differs);
    else if (!differs.empty())
      name += " (" + differs.substr(2) + ")";
    names.push_back(name);
  }
  for (size_t i = 0; i < results.size(); ++i) results[i].name.algorithm = names[i];
}

// The results.jsonl files in a folder or below; a file itself.
std::vector<std::string> log_files(const std::string& path) {
  if (fs::is_regular_file(path)) return {path};
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename() == "results.jsonl") files.push_back(entry->path().native());
  if (error) fail("cannot list ", printable(path), ": ", error.message());
  if (files.empty()) fail(printable(path), " has no results.jsonl in it or below; give the folder of a sweep");
  std::ranges::sort(files);
  return files;
}

// The logs of one file, in the order in which they begin.
std::vector<DgLog> logs_in(const std::string& file) {
  std::vector<DgLog> logs;
  std::map<std::string, size_t> places;  // by "args"
  std::vector<ordered_json> lines = read_lines(file);
  if (lines.empty()) fail("there are no evaluations");
  for (ordered_json& line : lines) {
    const auto [place, is_new] = places.try_emplace(line.contains("args") ? line.at("args").dump() : "", logs.size());
    if (is_new) logs.push_back({file, {}});
    logs[place->second].lines.push_back(std::move(line));
  }
  return logs;
}

}  // namespace

DgResult dg_result(const std::vector<ordered_json>& lines) {
  if (lines.empty()) fail("there are no evaluations");
  DgResult result{read_run_name(member(lines.front(), "args")), {}};
  for (const ordered_json& line : lines) result.evaluations.push_back(read_evaluation(line));
  if (std::ranges::any_of(result.evaluations, is_result))
    std::erase_if(result.evaluations, [](const DgEvaluation& evaluation) { return !is_result(evaluation); });
  const size_t environments = result.evaluations.front().in.size();
  for (const DgEvaluation& evaluation : result.evaluations)
    if (evaluation.in.size() != environments) fail("its lines are of different environments");
  for (const int64_t environment : result.name.test_envs)
    if (environment < 0 || environment >= static_cast<int64_t>(environments))
      fail("test environment ", environment, " is not among its ", environments, " environments");
  std::ranges::sort(result.evaluations, {}, &DgEvaluation::step);
  result.cost = read_cost(lines.back());
  add_origin(result, lines.front().at("args"));
  std::vector<const ordered_json*> by_step;
  for (const ordered_json& line : lines) by_step.push_back(&line);
  std::ranges::stable_sort(by_step, {}, [](const ordered_json* line) { return read_count(*line, "step"); });
  result.speed = speed_of_lines(by_step);
  return result;
}

DgResult read_dg_result(const std::string& file) {
  try {
    return dg_result(read_lines(file));
  } catch (const Error& problem) {
    fail(printable(file), ": ", problem.what());
  }
}

std::string dg_log_text(const std::vector<ordered_json>& lines) {
  std::string text;
  for (const ordered_json& line : lines) text += checked_json_line(line);
  return text;
}

void for_each_dg_log(const std::string& path, std::vector<std::string>& warnings,
                     const std::function<void(DgLog log)>& use) {
  for (const std::string& file : log_files(path)) {
    std::vector<DgLog> logs;
    try {
      logs = logs_in(file);
    } catch (const Error& problem) {
      warnings.push_back(cat(printable(file), " is left out: ", problem.what()));
    }
    for (DgLog& log : logs) use(std::move(log));
  }
}

std::optional<DgResult> usable_dg_result(const DgLog& log, std::vector<std::string>& warnings) {
  try {
    return dg_result(log.lines);
  } catch (const Error& problem) {
    warnings.push_back(cat(printable(log.file), " is left out: ", problem.what()));
    return std::nullopt;
  }
}

void tell_apart(std::vector<DgResult>& results) {
  tell_data_apart(results);
  tell_settings_apart(results);
}

std::vector<nlohmann::ordered_json> domainbed_lines(const DgLog& log) {
  std::vector<nlohmann::ordered_json> lines = log.lines;
  if (lines.back().contains("result_weights")) lines = {lines.back()};
  for (nlohmann::ordered_json& line : lines)
    line["args"]["dataset"] = dataset_title(line["args"]["dataset"].get<std::string>());
  return lines;
}

std::vector<DgResult> read_dg_results(const std::string& path, std::vector<std::string>& warnings) {
  std::vector<DgResult> results;
  for_each_dg_log(path, warnings, [&](const DgLog& log) {
    if (auto result = usable_dg_result(log, warnings)) results.push_back(std::move(*result));
  });
  tell_apart(results);
  return results;
}

}  // namespace sparsight
