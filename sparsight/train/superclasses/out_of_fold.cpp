#include "sparsight/train/superclasses/out_of_fold.h"

#include <filesystem>
#include <map>
#include <optional>

#include <ATen/ops/zeros.h>

#include "sparsight/core/config.h"
#include "sparsight/core/limits.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/core/shuffle.h"
#include "sparsight/core/toml.h"
#include "sparsight/data/decorators/subset.h"
#include "sparsight/data/register_data.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/jobs/run_jobs.h"
#include "sparsight/train/run_config.h"
#include "sparsight/train/trainer.h"

namespace sparsight {
namespace {

// What all folds are made of.
struct FoldedRun {
  Json config;  // of a fold
  DataSplits splits;
  std::vector<int64_t> image_to_fold;  // [images of splits.train]
  std::vector<bool> is_counted;        // likewise
};

// Selection by validation accuracy would need images that neither training nor counting may use.
Json fold_config(const std::string& run) {
  const RunFolder folder = RunFolder::open(run);
  Config config = Config::from_text(read_file(folder.config(), kMaxConfigBytes), folder.config());
  config.set("train", "patience", 0, "folds");
  config.set("train", "keep", "last", "folds");
  return resolve(config, config_sections());
}

DataSplits fold_splits(const Json& config) {
  const RunOptions run = read_section<RunOptions>(config, "run");
  apply_threads(run);
  return make_component(data_sets(), config, "data", DataContext{static_cast<uint64_t>(run.seed)});
}

// The training images without those of the fold, or only those that are counted of it.
DataSetPtr fold_images(const FoldedRun& folded, int64_t fold, bool left_out) {
  std::vector<int64_t> chosen;
  for (size_t i = 0; i < folded.image_to_fold.size(); ++i)
    if (left_out ? folded.image_to_fold[i] == fold && folded.is_counted[i] : folded.image_to_fold[i] != fold)
      chosen.push_back(static_cast<int64_t>(i));
  if (chosen.empty()) fail_usage("fold ", fold, " leaves no images; use fewer folds or more images");
  return std::make_shared<SubsetDataSet>(folded.splits.train, std::move(chosen));
}

void train_fold(const FoldedRun& folded, int64_t fold, const std::string& path) {
  DataSplits splits = folded.splits;
  splits.train = fold_images(folded, fold, /*left_out=*/false);
  TrainingSetup setup = make_training_setup(folded.config, /*fresh=*/true, splits);
  setup.validation_loader.reset();
  setup.monitor_loader.reset();
  const bool begun = std::filesystem::exists(path + "/config.toml");
  RunFolder folder = RunFolder::create(path, begun ? IfExists::kResume : IfExists::kOverwrite);
  warn_of_other_kernels(folder.env());
  if (!begun) write_file_atomically(folder.env(), describe_environment().dump(2) + "\n");
  write_file_atomically(folder.config(), to_toml(setup.config));
  Trainer trainer(std::move(setup), std::move(folder));
  trainer.resume();
  if (trainer.run() == TrainingEnd::interrupted) fail("interrupted after step ", trainer.step());
}

// The counts as a list of [true class, predicted class, images].
Json sparse_counts(const at::Tensor& counts) {
  Json list = Json::array();
  const int64_t classes = counts.size(0), *count = counts.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < counts.numel(); ++i)
    if (count[i] > 0) list.push_back({i / classes, i % classes, count[i]});
  return list;
}

Json run_fold(const FoldedRun& folded, int64_t fold, const std::string& job_folder) {
  const std::string path = job_folder + "/training";
  train_fold(folded, fold, path);
  LoadedModel loaded = load_model(path);
  ConfusionCounts counts(ConfusionKind::hard, std::ssize(loaded.data.classes));
  count_confusion(loaded, fold_images(folded, fold, /*left_out=*/true), counts);
  std::filesystem::remove_all(path);
  return {{"images", counts.images()}, {"counts", sparse_counts(counts.counts())}};
}

void add_fold_counts(const Json& result, at::Tensor& counts, const std::string& folder) {
  const int64_t classes = counts.size(0);
  int64_t* count = counts.mutable_data_ptr<int64_t>();
  for (const Json& entry : result.at("counts")) {
    const auto cell = entry.get<std::vector<int64_t>>();
    if (cell.size() != 3 || std::min(cell[0], cell[1]) < 0 || std::max(cell[0], cell[1]) >= classes || cell[2] < 0)
      fail(printable(folder), ": the result of a fold is damaged; remove the folder and start again");
    count[cell[0] * classes + cell[1]] += cell[2];
  }
}

FoldedRun folded_run(const std::string& run, int64_t folds) {
  FoldedRun folded;
  folded.config = fold_config(run);
  folded.splits = fold_splits(folded.config);
  const DataSetPtr& train = folded.splits.train;
  const uint64_t seed = static_cast<uint64_t>(read_section<RunOptions>(folded.config, "run").seed);
  need_single_labels(train->info(), "the confusion of classes");
  folded.image_to_fold = balanced_folds(*train, folds, seed);
  folded.is_counted.assign(folded.image_to_fold.size(), false);
  for (const int64_t i : positions_apart(*train, "training", {{"test", folded.splits.test}}))
    folded.is_counted[static_cast<size_t>(i)] = true;
  return folded;
}

}  // namespace

std::vector<int64_t> balanced_folds(const DataSet& images, int64_t folds, uint64_t seed) {
  std::map<int64_t, std::vector<int64_t>> by_class;
  for (int64_t i = 0; i < images.size(); ++i) by_class[images.label(i)].push_back(i);
  RandomStream stream(seed, "superclasses.folds");
  std::vector<int64_t> image_to_fold(static_cast<size_t>(images.size()));
  int64_t next = 0;  // carried from class to class, so that the folds are of equal size too
  for (auto& [label, indices] : by_class) {
    if (indices.size() < 2)
      fail_usage("class \"", printable(images.info().classes.at(static_cast<size_t>(label))),
                 "\" has 1 training image: a model that has not seen it cannot know the class; use more images");
    shuffle(indices, stream);
    for (const int64_t index : indices) image_to_fold[static_cast<size_t>(index)] = next++ % folds;
  }
  return image_to_fold;
}

CountedConfusion out_of_fold_confusion(const std::string& run, int64_t folds) {
  if (folds < 2) fail_usage(folds, " folds; choose 2 or more: each model is trained without one of them");
  const FoldedRun folded = folded_run(run, folds);
  const DataInfo& data = folded.splits.train->info();
  JobList list;
  list.name = "folds";
  Json config = folded.config;
  config["run"].erase("threads");
  for (int64_t fold = 0; fold < folds; ++fold)
    list.settings.push_back({{"config", config}, {"folds", folds}, {"fold", fold}});
  list.run = [&](const Json& settings, const std::string& job_folder) {
    return run_fold(folded, settings.at("fold").get<int64_t>(), job_folder);
  };
  const JobStore store(run + "/folds", "out-of-fold predictions", "--folder");
  work_here(list, store);

  const int64_t classes = std::ssize(data.classes);
  at::Tensor counts = at::zeros({classes, classes}, at::kLong);
  for (const Json& settings : list.settings) {
    if (const auto error = store.failure(settings))
      fail("fold ", settings.at("fold").get<int64_t>(), " failed: ", *error);
    const auto done = store.read(settings);
    if (!done) fail("fold ", settings.at("fold").get<int64_t>(), " has no result; start the same command again");
    add_fold_counts(done->result, counts, store.folder());
  }
  const int64_t images = counts.sum().item<int64_t>();
  return {counts,
          data.classes,
          {{"run", printable(run)},
           {"confusion", "oof"},
           {"split", "train"},
           {"folds", folds},
           {"images", images},
           {"left_out", folded.splits.train->size() - images}}};
}

}  // namespace sparsight
