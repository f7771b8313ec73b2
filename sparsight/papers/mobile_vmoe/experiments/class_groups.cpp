#include "sparsight/papers/mobile_vmoe/experiments/class_groups.h"

#include <filesystem>
#include <map>
#include <mutex>

#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>
#include <torch/types.h>

#include <nlohmann/json.hpp>

#include "sparsight/analysis/superclasses/cluster_classes.h"
#include "sparsight/analysis/superclasses/confusion_counts.h"
#include "sparsight/analysis/superclasses/map_file.h"
#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/data/register_data.h"
#include "sparsight/infer/loaded_model.h"
#include "sparsight/reproduce/train_job.h"

namespace sparsight::mobile_vmoe {
namespace {

constexpr double kHeldOut = 0.1;
constexpr int64_t kConfusionSeed = 0, kConfusionBatch = 128;

// [K,K]: mean probabilities of the held-out images of each class.
at::Tensor held_out_confusion(const std::string& weights) {
  const at::NoGradGuard no_grad;
  LoadedModel loaded = load_model(weights);
  const auto seed = static_cast<uint64_t>(kConfusionSeed);
  const DataSetPtr images = make_component(data_sets(), loaded.config, "data", DataContext{seed}).validation;
  compile(loaded, images->size());
  ConfusionCounts counts(ConfusionKind::soft, std::ssize(loaded.data.classes));
  for (int64_t begin = 0; begin < images->size(); begin += kConfusionBatch) {
    if (interrupted()) fail("interrupted");
    std::vector<at::Tensor> pixels;
    std::vector<int64_t> labels;
    for (int64_t i = begin; i < std::min(images->size(), begin + kConfusionBatch); ++i) {
      const Sample sample = images->get(i);
      pixels.push_back(model_image(loaded, sample.image));
      labels.push_back(sample.label);
    }
    const at::Tensor numbers = at::arange(begin, begin + std::ssize(labels));
    const ModelOutput output = loaded.forward({.images = at::stack(pixels), .info = {.image = numbers}});
    counts.add(output.logits.to(at::kFloat), torch::tensor(labels, torch::kLong));
  }
  return counts.counts();
}

}  // namespace

KeptResults kept_results(const FigureRun& run) { return {run, "mobile_vmoe", "mobile_vmoe 1"}; }

std::string data_fingerprint(const FigureRun& run) {
  static std::mutex mutex;
  static std::map<std::string, std::string> known;
  const std::lock_guard lock(mutex);
  std::string& found = known[run.data];
  if (found.empty()) found = read_data({mobile_data()}, run).fingerprint;
  return found;
}

Json training_identity(const Json& sections, const FigureRun& run) {
  Json identity = sections;
  identity["data"].erase("root");
  identity["of"] = data_fingerprint(run);
  return identity;
}

std::vector<int64_t> found_groups(int64_t experts, const MobileOptions& options, const FigureRun& run) {
  const KeptResults kept = kept_results(run);
  MobileModel confused = mobile_model(options, kDense);
  confused.k = 1;  // the plain transformer, for every figure
  const Json sections = training_sections(confused, options, run, kConfusionSeed, kHeldOut);
  const Json identity = {{"groups", experts}, {"of", training_identity(sections, run)}};
  const Json found = kept.result(identity, [&] {
    const Json& dense = identity.at("of");
    const std::string weights = kept.file(dense, ".safetensors");
    {
      const FileLock lock = kept_lock(weights);
      if (!std::filesystem::exists(weights)) {
        const std::string work = kept.folder_for(dense);
        train_in_job(sections, work, weights);
        std::filesystem::remove_all(work);
      }
    }
    return Json(cluster_classes(held_out_confusion(weights), {.superclasses = experts}).class_to_superclass);
  });
  return found.get<std::vector<int64_t>>();
}

ClassGroups groups_for(const MobileModel& model, const MobileOptions& options, const FigureRun& run, int64_t seed) {
  if (!model.is_guided()) return {};
  if (model.routing == kRandom) return {{{"source", "random"}, {"sizes", "equal"}, {"seed", seed}}};
  if (model.experts == class_counts(options, run).groups) return {{{"source", "data"}}};
  std::vector<int64_t> map = found_groups(model.experts, options, run);
  const std::string file = kept_results(run).file({{"map", map}}, ".txt");
  write_superclass_map(file, map);
  return {{{"source", "file"}, {"file", file}}, map};
}

}  // namespace sparsight::mobile_vmoe
