#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>

#include "cli/cmd_dg.h"
#include "cli/output.h"
#include "cli/work/interruptible.h"
#include "cli/work/to_dg_run.h"
#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/log.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/core/progress.h"
#include "sparsight/data/domainbed/cub_dg.h"
#include "sparsight/data/domainbed/domainbed.h"
#include "sparsight/data/hash.h"
#include "sparsight/dg/check_runs.h"
#include "sparsight/dg/dg_models.h"
#include "sparsight/dg/hyperparameters.h"
#include "sparsight/dg/results/published_results.h"
#include "sparsight/dg/results/result_table.h"
#include "sparsight/dg/single_source.h"
#include "sparsight/dg/speed_table.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/atomic_folder.h"
#include "sparsight/reproduce/result_text.h"

#include <nlohmann/json.hpp>

namespace sparsight::cli {
namespace {

Json to_config(const DgHparamsArguments& arguments) {
  DgRun run;
  run.set = arguments.set, run.algorithm = arguments.algorithm, run.model = arguments.model;
  return dg_config(run);
}

// Only ResNets have a dropout of the features; runs of others leave it out.
std::string find_setting(const Hyperparameter& parameter, const Json& config) {
  const bool of_model = parameter.key.starts_with("model.");
  const bool used = !parameter.key.empty() && (!of_model || config.at("model").at("name") == "resnet");
  return used ? parameter.key : "not used";
}

std::string folder_name(const DgRun& run) {
  std::string name = cat("runs/dg/", run.set, "-", run.algorithm, run.model.empty() ? "" : "-" + run.model);
  for (const int64_t environment : run.test_envs) name += cat("-", environment);
  return cat(name, "-trial", run.trial_seed, "-hparams", run.hparams_seed);
}

// The last evaluation, a row per environment.
void print_last(const DgRun& run, const Json& line) {
  TextTable table{{"environment", "in (%)", "out (%)", ""}, {false, true, true, false}, {}};
  for (int64_t e = 0; line.contains(cat("env", e, "_in_acc")); ++e) {
    const auto percent_text = [&](const char* half) {
      char text[32];
      std::snprintf(text, sizeof text, "%.1f", 100 * line.at(cat("env", e, "_", half, "_acc")).get<double>());
      return std::string(text);
    };
    const bool is_test = std::ranges::find(run.test_envs, e) != run.test_envs.end();
    table.rows.push_back({std::to_string(e), percent_text("in"), percent_text("out"), is_test ? "test" : ""});
  }
  const std::string weights = text(line, "result_weights");
  output() << "step " << line.at("step") << (weights.empty() ? "" : ", weights of " + printable(weights)) << "\n"
           << markdown_table(table);
}

// Returns the same text for every way to write the path of a folder.
std::string plain_path(const std::string& folder) {
  std::error_code error;
  std::string plain = folder.empty() ? "" : std::filesystem::weakly_canonical(folder, error).native();
  while (plain.size() > 1 && plain.ends_with('/')) plain.pop_back();
  return error ? folder : plain;
}

}  // namespace

DgRun to_dg_run(const DgRunArguments& arguments) {
  DgRun run;
  run.set = arguments.set, run.root = plain_path(arguments.data), run.model = arguments.model;
  run.steps = arguments.steps, run.eval_every = arguments.eval_every, run.image_size = arguments.image_size;
  run.overrides = arguments.overrides;
  find_position(run.set, domainbed_names(), "data set");
  return run;
}

void run_dg_cub(const DgCubArguments& arguments) {
  std::optional<Progress> progress;
  const int64_t images = build_cub_dg({arguments.cub, arguments.candy, arguments.mosaic, arguments.udnie},
                                      arguments.out, [&](int64_t done, int64_t total) {
                                        if (!progress) progress.emplace("make", total, "images");
                                        progress->update(done);
                                      });
  if (progress) progress->finish();
  output() << images << " images in 4 domains, and the keypoints of their birds: " << printable(arguments.out) << "\n";
}

void run_dg_hparams(const DgHparamsArguments& arguments) {
  find_position(arguments.set, domainbed_names(), "data set");
  std::vector<ProtocolDefault> of_model;
  if (!arguments.model.empty()) of_model = entry_named(arguments.model, dg_models(), "model").defaults;
  const auto list = all_hyperparameters(arguments.algorithm, arguments.set, arguments.seed, arguments.trial, of_model);
  if (arguments.json) {
    Json json = Json::object();
    for (const Hyperparameter& parameter : list) json[parameter.name] = parameter.value;
    output() << json_text(json, 2) << "\n";
    return;
  }
  const bool sampled = arguments.seed > 0;
  TextTable table{{"hyper-parameter", "setting", "default", "random search"}, {false, false, true, false}, {}};
  if (sampled) table.header.emplace_back(cat("seed ", arguments.seed, ", trial ", arguments.trial));
  if (sampled) table.right.push_back(true);
  const Json config = to_config(arguments);
  for (const Hyperparameter& parameter : list) {
    std::vector<std::string> row{parameter.name, find_setting(parameter, config), parameter.fallback.dump(),
                                 parameter.range.empty() ? "-" : parameter.range};
    if (sampled) row.push_back(parameter.value.dump());
    table.rows.push_back(row);
  }
  for (const char* key : {"max_steps", "eval_every"}) {
    table.rows.push_back({key, cat("train.", key), config.at("train").at(key).dump(), "-"});
    if (sampled) table.rows.back().push_back(table.rows.back()[2]);
  }
  output() << markdown_table(table);
}

void run_dg_train(const DgTrainArguments& arguments) {
  begin_interruptible_work();
  DgRun run = to_dg_run(arguments.run);
  run.algorithm = arguments.algorithm, run.test_envs = arguments.test_envs;
  run.trial_seed = arguments.trial, run.hparams_seed = arguments.seed;
  check_runs({run});
  const std::string folder = arguments.out.empty() ? folder_name(run) : arguments.out;
  const std::vector<Json> lines = train_dg(run, folder);
  print_last(run, lines.back());
  if (const std::string speed = speed_text(dg_result(lines).speed); !speed.empty()) output() << speed << "\n";
  output() << "run folder: " << printable(folder) << "\n";
}

namespace {

// Gives `use` the runs in these folders and files, each once.
void for_each_run(const std::vector<std::string>& folders, const std::function<void(const DgLog& log)>& use) {
  std::map<std::string, std::string> files;  // by what a run is of
  for (const std::string& folder : folders) {
    std::vector<std::string> warnings;
    for_each_dg_log(folder, warnings, [&](const DgLog& log) {
      const auto [first, is_new] = files.try_emplace(member(log.lines.front(), "args").dump(), log.file);
      if (is_new)
        use(log);
      else
        warnings.push_back(cat(printable(log.file), " is left out: it is the run of ", printable(first->second)));
    });
    for (const std::string& warning : warnings) log_warning(warning);
  }
}

// Raises Error where the file that dg collect is to replace is no such file.
void check_collected(const std::string& file) {
  if (!std::filesystem::exists(file)) return;
  std::vector<std::string> warnings;
  if (std::filesystem::is_regular_file(file)) for_each_dg_log(file, warnings, [](const DgLog&) {});
  if (!std::filesystem::is_regular_file(file) || !warnings.empty())
    fail(printable(file), " is there and holds no results of runs; choose another file with --out");
}

// warnings: about runs that are left out.
void print_tables(std::vector<DgResult> results, const std::vector<std::string>& warnings,
                  const DgTableArguments& arguments) {
  for (const std::string& warning : warnings) log_warning(warning);
  if (results.empty()) fail("none of the results below ", printable(arguments.folder), " can be read");
  tell_apart(results);
  std::vector<DgTable> tables = dg_tables(results);
  const std::vector<DgTable> summaries = average_tables(tables);
  const std::vector<DgTable> single = single_source_tables(results, arguments.baseline, arguments.published);
  if (tables.empty() && single.empty())
    fail("no selection rule applies to the results below ", printable(arguments.folder),
         ": they have no run with a single test environment, nor with a single training environment");
  tables.insert(tables.end(), summaries.begin(), summaries.end());
  if (arguments.published) add_published(tables);
  tables.insert(tables.end(), single.begin(), single.end());
  const std::vector<DgTable> speeds = speed_tables(results);
  tables.insert(tables.end(), speeds.begin(), speeds.end());
  output() << formatted(tables, table_format(arguments.format));
}

}  // namespace

void run_dg_table(const DgTableArguments& arguments) {
  std::vector<DgResult> results;
  std::vector<std::string> warnings;
  for_each_run({arguments.folder}, [&](const DgLog& log) {
    if (auto result = usable_dg_result(log, warnings)) results.push_back(std::move(*result));
  });
  print_tables(std::move(results), warnings, arguments);
}

void run_dg_export(const DgExportArguments& arguments) {
  if (std::filesystem::exists(arguments.out))
    fail(printable(arguments.out), " is there already; choose another folder with --out");
  AtomicFolder sweep(arguments.out);
  int64_t runs = 0;
  for_each_run(arguments.folders, [&](const DgLog& log) {
    const std::vector<Json> lines = domainbed_lines(log);
    const std::string arguments_text = lines.front().at("args").dump();
    Hasher md5("md5");
    md5.add(arguments_text.data(), arguments_text.size());
    const std::string folder = cat(sweep.aside(), "/", md5.hex());
    create_folder(folder);
    write_file_atomically(folder + "/results.jsonl", dg_log_text(lines));
    write_file_atomically(folder + "/done", "done");
    ++runs;
  });
  sweep.commit();
  log_info(runs, runs == 1 ? " run in " : " runs in ", printable(arguments.out));
}

void run_dg_collect(const DgCollectArguments& arguments) {
  std::vector<DgResult> results;
  std::vector<std::string> warnings;
  std::string text;
  int64_t runs = 0;
  for_each_run(arguments.folders, [&](const DgLog& log) {
    if (auto result = usable_dg_result(log, warnings)) results.push_back(std::move(*result));
    text += dg_log_text(log.lines);
    ++runs;
  });
  check_collected(arguments.out);
  write_file_atomically(arguments.out, text);
  log_info(runs, runs == 1 ? " run in " : " runs in ", printable(arguments.out));
  print_tables(std::move(results), warnings,
               {join(arguments.folders), arguments.format, arguments.baseline, arguments.published});
}

}  // namespace sparsight::cli
