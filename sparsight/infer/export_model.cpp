#include "sparsight/infer/export_model.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "sparsight/catalogue/run_options.h"
#include "sparsight/core/config.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/log.h"
#include "sparsight/core/machine.h"
#include "sparsight/core/printable.h"
#include "sparsight/engine/onnx/onnx_export.h"
#include "sparsight/eval/evaluate.h"
#include "sparsight/infer/bare_weights.h"
#include "sparsight/infer/calibration_split.h"
#include "sparsight/infer/frozen_model.h"
#include "sparsight/infer/mixed_types.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/models/smooth_channels.h"
#include "sparsight/ops/weight_type.h"

namespace sparsight {
namespace {

constexpr double kMaxDrop = 0.3;  // of "auto", in points of accuracy
constexpr int64_t kSmoothingImages = 256;

// The best class of each image, and whether it is right.
class BestClasses : public EvaluationObserver {
 public:
  void observe(const Batch& batch, const ModelOutput& output) override {
    const at::Tensor best = output.logits.argmax(1).contiguous(), labels = batch.labels.contiguous();
    if (!at::isfinite(output.logits).all().item<bool>())
      fail("its logits on image ", classes.size(), " and later are not finite; its weights are damaged");
    for (int64_t i = 0; i < best.size(0); ++i) {
      classes.push_back(best.const_data_ptr<int64_t>()[i]);
      right += classes.back() == labels.const_data_ptr<int64_t>()[i] ? 1 : 0;
    }
  }
  double accuracy() const { return static_cast<double>(right) / static_cast<double>(classes.size()); }

  std::vector<int64_t> classes;
  int64_t right = 0;
};

CalibrationSplit calibration(const ExportRequest& request, const LoadedModel& loaded) {
  CalibrationSplit on = calibration_split(
      loaded, request.split.empty() ? std::vector<std::string>{"val", "test"} : std::vector{request.split},
      request.images);
  if (!on.data)
    fail("the dataset has no ", request.split.empty() ? "validation or test" : request.split,
         " images to compare answers on; choose another --split, or leave the comparison out with --no-compare");
  return on;
}

std::vector<Batch> batches(const LoadedModel& loaded, const CalibrationSplit& on) {
  const auto loader = calibration_loader(loaded, on);
  loader->start(0);
  std::vector<Batch> all;
  while (auto batch = loader->next()) all.push_back(std::move(*batch));
  return all;
}

// Measures on training images, so that those on which answers are compared stay unseen.
int64_t smooth(const ExportRequest& request, LoadedModel& loaded) {
  const CalibrationSplit on = calibration_split(loaded, {"train", "val", "test"}, kSmoothingImages);
  if (!on.data) fail("the dataset has no images to measure activations on; leave out --smooth");
  std::vector<at::Tensor> images;
  for (const Batch& batch : batches(loaded, on)) images.push_back(batch.images);
  return smooth_channels(*loaded.model, images, *request.smooth);
}

BestClasses answers(const LoadedModel& loaded, const CalibrationSplit& on, const std::string& title) {
  BestClasses best;
  const auto loader = calibration_loader(loaded, on);
  evaluate([&](const ModelInput& input) { return loaded.forward(input); }, *loader, loaded.shape.classes,
           loaded.task_loss, /*bf16=*/false, title, {&best});
  if (interrupted()) fail("interrupted after ", best.classes.size(), " images; nothing was written");
  return best;
}

Json comparison(const ExportRequest& request, const CalibrationSplit& on, const LoadedModel& original,
                const LoadedModel& exported) {
  const BestClasses before = answers(original, on, "fp32"), after = answers(exported, on, exported.weight_type);
  int64_t equal = 0;
  for (size_t i = 0; i < before.classes.size(); ++i) equal += before.classes[i] == after.classes[i] ? 1 : 0;
  const double drop = 100 * (before.accuracy() - after.accuracy());
  if (request.max_drop && drop > *request.max_drop)
    fail("in ", exported.weight_type, " the model loses ", drop, " points of accuracy (", 100 * before.accuracy(),
         " to ", 100 * after.accuracy(), " % of ", before.classes.size(), " images), more than --max-drop ",
         *request.max_drop, "; nothing was written");
  return {{"split", on.split},
          {"images", before.classes.size()},
          {"accuracy", after.accuracy()},
          {"fp32_accuracy", before.accuracy()},
          {"drop", drop},
          {"agreement", static_cast<double>(equal) / static_cast<double>(before.classes.size())}};
}

// Replaces the model by a program whose steps are in different types. Returns how many are in each.
Json choose_types(const ExportRequest& request, const CalibrationSplit& on, LoadedModel& loaded) {
  const auto in = [&](WeightType type) { return make_program(loaded, {.type = type}); };
  const torch::NoGradGuard no_grad;
  MixedTypes mixed = mix_types(in(WeightType::fp32), in(WeightType::bf16), in(WeightType::int8), batches(loaded, on),
                               request.max_drop.value_or(kMaxDrop));
  compile(loaded, std::numeric_limits<int64_t>::max());  // what it sets beside the program
  loaded.program = std::make_shared<const ProgramModel>(std::move(mixed.program), loaded.shape);
  loaded.weight_type = "auto";
  Json counts = Json::object();
  for (const std::string& type : weight_type_names()) counts[type] = std::ranges::count(mixed.types, type);
  return counts;
}

}  // namespace

std::string exported_path(const ExportRequest& request) {
  if (!request.out.empty()) return request.out;
  const std::filesystem::path path(request.path);
  const std::string type = request.weights == "fp32" ? "" : "_" + request.weights;
  if (std::filesystem::is_directory(path)) return (path / ("model" + type + "." + request.format)).string();
  return (path.parent_path() / (path.stem().string() + type + "." + request.format)).string();
}

Json export_model(const ExportRequest& request, const std::function<void(const LoadedModel&)>& check) {
  const std::string out = exported_path(request);
  const ModelRequest model{request.path, request.checkpoint, request.overrides, request.bare, request.compares};
  LoadedModel exported = load_model_or_weights(model);
  apply_threads(read_section<RunOptions>(exported.config, "run"));
  if (!exported.model) fail(printable(request.path), " is exported already; export the run that it is of");
  if (!request.replace && request.format != "onnx" && std::filesystem::exists(out) &&
      !is_frozen_from(out, exported, request.weights))
    fail(printable(out), " exists already and is of another model; choose another with --out, or replace it with ",
         "--overwrite");
  if (check) check(exported);
  if (request.weights == "auto" && !request.compares)
    fail_usage("--weights auto compares answers; leave out --no-compare");
  if (request.smooth && !request.compares)
    fail_usage("--smooth measures activations on the dataset; leave out --no-compare");
  const auto all = std::numeric_limits<int64_t>::max();
  LoadedModel original = exported;
  std::optional<CalibrationSplit> on;
  if (request.compares) on = calibration(request, exported);
  Json result{{"file", printable(out)}, {"weights", request.weights}}, measured = Json::object();
  if (on) compile(original, all);
  if (request.smooth) result["smoothed_layers"] = smooth(request, exported);
  if (request.weights == "auto")
    result["types"] = choose_types(request, *on, exported);
  else
    compile(exported, all, request.weights);
  if (on) measured = comparison(request, *on, original, exported);
  if (request.smooth) measured["smooth"] = *request.smooth;
  const Existing existing = request.replace ? Existing::replace : Existing::keep_equal;
  if (request.format == "onnx") {
    AtomicFile file(out, existing);
    engine::write_onnx(exported.program->program(), [&](const void* data, size_t bytes) { file.write(data, bytes); });
    file.commit();
  } else {
    write_frozen_model(exported, measured, out, existing);
  }
  result["bytes"] = std::filesystem::file_size(out);
  result.update(measured);
  return result;
}

}  // namespace sparsight
