#include "sparsight/train/superclasses/pipeline.h"

#include <filesystem>
#include <ostream>

#include "sparsight/analysis/superclasses/map_file.h"
#include "sparsight/catalogue/run_options.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/register_data.h"
#include "sparsight/eval/guidance.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/io/temporary.h"
#include "sparsight/moe/moe_spec.h"
#include "sparsight/report/report.h"
#include "sparsight/report/run/superclass_folder.h"
#include "sparsight/report/run/superclass_report.h"
#include "sparsight/train/run_config.h"
#include "sparsight/train/train_run.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOrigin = "superclass train";
constexpr size_t kShownDifferences = 3;

// The resolved configurations of the two trainings.
struct StageConfigs {
  Json dense, moe;
};

StageConfigs stage_configs(SuperclassTraining& training) {
  Config dense = training.config, moe = training.config;
  const MoeSpec spec = read_moe_spec(resolve(moe, config_sections()));
  if (spec.options.blocks.empty() && spec.overrides.empty())
    fail_usage(
        "the configuration has no MoE layers, so it has no experts to give super-classes to; set moe.blocks, for "
        "example to [-2, -1]");
  int64_t& superclasses = training.search.clusters.superclasses;
  if (superclasses == 0) superclasses = spec.options.experts;
  dense.set("moe", "blocks", Json::array(), kOrigin);
  dense.set("moe", "layer", Json::array(), kOrigin);
  dense.set("superclasses", "source", "data", kOrigin);
  dense.set("superclasses", "file", "", kOrigin);
  moe.set("moe", "experts", superclasses, kOrigin);
  moe.set("superclasses", "source", "file", kOrigin);
  moe.set("superclasses", "file", superclass_map_file(superclass_folder(training.folder)), kOrigin);
  StageConfigs configs{resolve(dense, config_sections()), resolve(moe, config_sections())};
  if (!is_guided(configs.moe))
    fail_usage("router.name = ", shown(configs.moe.at("router").at("name")),
               " is not trained with super-classes; set "
               "router.name = \"per_image\", or losses.superclass above 0");
  return configs;
}

// What would fail after the first training is found before it.
void check_data(const SuperclassTraining& training, const Json& dense) {
  const RunOptions run = read_section<RunOptions>(dense, "run");
  apply_threads(run);
  const DataSplits splits = make_component(data_sets(), dense, "data", DataContext{static_cast<uint64_t>(run.seed)});
  const int64_t classes = std::ssize(splits.train->info().classes);
  need_single_labels(splits.train->info(), "the confusion of classes");
  const SuperclassSearch& search = training.search;
  ClusterOptions clusters = search.clusters;
  clusters.class_to_group = given_groups(search.groups, splits.train->info().super_class_of, classes);
  check_cluster_options(clusters, classes);
  if (search.confusion == "oof") return;
  ConfusionCounts(confusion_kind(search.confusion), classes);
  check_held_out(splits, search.split, splits.train->info().name);
  positions_apart(*splits.validation, "validation", {{"training", splits.train}, {"test", splits.test}});
}

Json describe_training(const SuperclassTraining& training, const Json& moe) {
  const SuperclassSearch& search = training.search;
  Json config = moe;
  config["run"].erase("threads");
  config["superclasses"].erase("file");  // follows from the folder, which may be moved
  return {{"format", "sparsight-superclass-training"},
          {"version", 1},
          {"confusion", search.confusion},
          {"folds", search.folds},
          {"groups", search.groups},
          {"method", search.clusters.method},
          {"tau", search.clusters.tau},
          {"min_cluster_size", search.clusters.min_cluster_size},
          {"config", config}};
}

// Raises Error unless the folder is new or of the same call.
void claim_folder(const std::string& folder, const Json& description) {
  const std::string file = folder + "/pipeline.json";
  std::error_code error;
  if (!fs::exists(file, error)) {
    if (fs::is_directory(folder, error)) remove_stale_temporaries(file);  // of a process that was killed here
    if (fs::exists(folder, error) && (!fs::is_directory(folder, error) || !fs::is_empty(folder, error)))
      fail(printable(folder), " holds other files; choose another folder with --out");
    create_folder(folder);
    write_file_atomically(file, json_text(description, 2) + "\n");
    return;
  }
  const auto before = try_parse_json_object(read_file(file, kMaxJsonBytes));
  if (!before) fail(printable(file), " is damaged; choose another folder with --out");
  const Json was = before->flatten(), now = description.flatten();
  std::vector<std::string> differences;
  for (const auto& [key, value] : now.items())
    if (!was.contains(key) || was[key] != value)
      differences.push_back(cat(printable(key.substr(1)), " is ", shown(value), ", was ",
                                was.contains(key) ? shown(was[key]) : "not set"));
  if (was.size() > now.size() && differences.empty()) differences.emplace_back("some settings are gone");
  if (differences.empty()) return;
  if (differences.size() > kShownDifferences) differences.resize(kShownDifferences);
  fail(printable(folder), " holds the stages of another call: ", join(differences),
       "; go on with that call, or choose another folder with --out");
}

void train_stage(const Json& config, const std::string& run, std::ostream& out) {
  if (fs::exists(run + "/done") && fs::exists(run + "/config.toml")) {
    log_info("the run ", printable(run), " is finished");
    if (!fs::exists(run + "/report.html")) write_report(run);  // killed before it was there
    return;
  }
  if (fs::exists(run + "/config.toml"))
    resume_training(run, {.go_on = GoOn::same_command}, out);
  else
    start_training(config, run, /*overwrite=*/false, out, GoOn::same_command);
}

}  // namespace

void train_with_superclasses(SuperclassTraining training, std::ostream& out) {
  const StageConfigs configs = stage_configs(training);
  const std::string dense = training.folder + "/dense", found_in = superclass_folder(training.folder);
  if (!fs::exists(dense + "/done")) check_data(training, configs.dense);
  claim_folder(training.folder, describe_training(training, configs.moe));
  log_info("stage 1 of 3: a dense model");
  train_stage(configs.dense, dense, out);
  log_info("stage 2 of 3: super-classes from its confusions");
  if (!fs::exists(superclass_map_file(found_in))) {
    const FoundSuperclasses found = superclasses_of_run(dense, "", training.search, {});
    write_superclasses(found_in, found);
    out << superclass_report(found);
  }
  log_info("stage 3 of 3: the model with an expert for each super-class");
  train_stage(configs.moe, training.folder + "/moe", out);
}

}  // namespace sparsight
