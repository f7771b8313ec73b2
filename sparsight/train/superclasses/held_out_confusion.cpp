#include "sparsight/train/superclasses/held_out_confusion.h"

#include <algorithm>
#include <set>

#include "sparsight/catalogue/run_options.h"
#include "sparsight/catalogue/train_options.h"
#include "sparsight/core/config.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/decorators/subset.h"
#include "sparsight/data/register_data.h"
#include "sparsight/data/shared_images.h"
#include "sparsight/eval/evaluate.h"
#include "sparsight/infer/named_split.h"
#include "sparsight/optim/precision.h"

namespace sparsight {
namespace {

constexpr double kMaxCopies = 0.01;  // share of a part whose pixels may be found elsewhere under other names

class ConfusionObserver : public EvaluationObserver {
 public:
  explicit ConfusionObserver(ConfusionCounts& counts) : counts_(counts) {}
  void observe(const Batch& batch, const ModelOutput& output) override {
    counts_.add(output.logits, batch.labels);
    is_routed = is_routed || !output.routings.empty();
  }
  bool is_routed = false;

 private:
  ConfusionCounts& counts_;
};

// Another seed, fraction or limit would make another validation split, with images that the run trained on.
void check_split_overrides(const std::vector<std::string>& overrides) {
  for (const std::string& set : overrides)
    if (!set.starts_with("data.root=") && !set.starts_with("loader.") && !set.starts_with("run.threads="))
      fail_usage("--set ", set,
                 " could change which images are held out; only data.root, [loader] and run.threads can "
                 "be set here");
}

}  // namespace

void check_held_out(const DataSplits& splits, const std::string& split, const std::string& of) {
  if (split == "train")
    fail_usage(
        "super-classes from the training images' own predictions would follow what the model memorised; use the "
        "validation split, or --confusion oof, which predicts each training image by a model that has not seen it");
  if (split == "test")
    fail_usage(
        "super-classes from the test split would leak its labels into the design of the model that it reports "
        "on; use the validation split, or --confusion oof");
  if (splits.missing == "validation")
    fail_usage(of,
               " has no images held out: the validation split is the test split; train with "
               "data.validation = 0.1, or use --confusion oof");
  if (splits.test == splits.validation)
    fail_usage(of,
               " has no test split, so accuracy is reported on the validation images, and "
               "super-classes must not come from these; add a test split, or use --confusion oof");
}

void need_softmax(const LoadedModel& loaded) {
  need_single_labels(loaded.data, "the confusion of classes");
  if (loaded.task_loss != TaskLoss::cross_entropy)
    fail_usage("the run ", loaded.path,
               " was trained with train.task_loss = \"sigmoid_cross_entropy\", whose classes do "
               "not exclude each other; confusions need a softmax, train.task_loss = \"cross_entropy\"");
}

std::vector<int64_t> positions_apart(const DataSet& part, const std::string& name,
                                     const std::vector<std::pair<std::string, DataSetPtr>>& others) {
  const ImageIdentities identities(part);
  std::set<int64_t> copies;
  for (const auto& [other, images] : others) {
    const SharedImages shared = identities.shared_with(*images);
    const auto copied = static_cast<double>(shared.by_content.size()) / static_cast<double>(part.size());
    if (!shared.by_id.empty() || copied > kMaxCopies)
      fail(shared.by_id.size() + shared.by_content.size(), " of the ", part.size(), " images of the ", name,
           " split are also in the ", other, " split (", printable(shared.example),
           "); super-classes must come from images that are in neither: give each image to one split");
    if (!shared.by_content.empty())
      log_warning(shared.by_content.size(), " of the ", part.size(), " images of the ", name,
                  " split are left out: the ", other, " split has copies of them, such as ", printable(shared.example));
    copies.insert(shared.by_content.begin(), shared.by_content.end());
  }
  std::vector<int64_t> apart;
  for (int64_t i = 0; i < part.size(); ++i)
    if (!copies.contains(i)) apart.push_back(i);
  return apart;
}

void count_confusion(LoadedModel& loaded, const DataSetPtr& images, ConfusionCounts& counts) {
  const auto loader =
      evaluation_loader(images, loaded.eval_transforms, read_section<LoaderOptions>(loaded.config, "loader"));
  const bool bf16 = use_bf16(read_section<TrainOptions>(loaded.config, "train").precision);
  if (!bf16) compile(loaded, images->size());
  ConfusionObserver observer(counts);
  const Predictor model = [&](const ModelInput& input) { return loaded.forward(input); };
  evaluate(model, *loader, loaded.shape.classes, loaded.task_loss, bf16, "confusions", {&observer});
  if (interrupted()) fail("interrupted after ", counts.images(), " images");
  if (observer.is_routed)
    log_info(printable(loaded.path),
             " has MoE layers; its predictions are counted like those of the dense model that "
             "the paper takes");
}

CountedConfusion held_out_confusion(const HeldOutRequest& request) {
  check_split_overrides(request.overrides);
  LoadedModel loaded = load_model(request.run, request.checkpoint, request.overrides);
  need_softmax(loaded);
  ConfusionCounts counts(request.kind, std::ssize(loaded.data.classes));
  const RunOptions run = read_section<RunOptions>(loaded.config, "run");
  apply_threads(run);
  const DataSplits splits =
      make_component(data_sets(), loaded.config, "data", DataContext{static_cast<uint64_t>(run.seed)});
  check_held_out(splits, request.split, "the run " + printable(request.run));
  const DataSetPtr images = named_split(splits, request.split);
  check_classes(loaded, images->info());
  std::vector<int64_t> apart =
      positions_apart(*images, "validation", {{"training", splits.train}, {"test", splits.test}});
  const int64_t left_out = images->size() - std::ssize(apart);
  count_confusion(loaded, std::make_shared<SubsetDataSet>(images, std::move(apart)), counts);
  static constexpr const char* kKinds[] = {"hard", "soft", "top5"};
  return {counts.counts(),
          loaded.data.classes,
          {{"run", printable(request.run)},
           {"checkpoint", printable(loaded.path)},
           {"step", loaded.step},
           {"confusion", kKinds[static_cast<int>(request.kind)]},
           {"split", request.split},
           {"images", counts.images()},
           {"left_out", left_out}}};
}

}  // namespace sparsight
