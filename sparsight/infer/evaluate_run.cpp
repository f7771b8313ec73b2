#include "sparsight/infer/evaluate_run.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "sparsight/core/config.h"
#include "sparsight/core/log.h"
#include "sparsight/core/machine.h"
#include "sparsight/core/printable.h"
#include "sparsight/dist/group.h"
#include "sparsight/eval/confused_images.h"
#include "sparsight/eval/evaluate.h"
#include "sparsight/eval/record_writer.h"
#include "sparsight/eval/router_measures.h"
#include "sparsight/infer/evaluation_setup.h"
#include "sparsight/infer/named_split.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/models/routing_file.h"
#include "sparsight/models/routing_record.h"
#include "sparsight/report/run/confused_file.h"

namespace sparsight {
namespace {

// Records the routing decisions of every batch.
class RoutingObserver : public EvaluationObserver {
 public:
  explicit RoutingObserver(const std::string& path) : record(path) {}
  void observe(const Batch& batch, const ModelOutput& output) override {
    std::vector<RoutedImage> images;
    for (int64_t i = 0; i < batch.labels.size(0); ++i)
      images.push_back({batch.ids.at(static_cast<size_t>(i)), batch.labels.const_data_ptr<int64_t>()[i],
                        batch.domains.const_data_ptr<int64_t>()[i]});
    record.add(to_routings(output), images);
  }
  RoutingRecordWriter record;
};

// The report shows the confused images beside the results of the training, which other settings do not give.
void check_confused_options(const EvaluateRunOptions& options) {
  RunFolder::open(options.path);
  const bool other_settings = std::ranges::any_of(
      options.overrides, [](const std::string& override) { return !override.starts_with("data.root="); });
  if (other_settings || options.flip || !options.routing.empty() || !options.weights.empty() ||
      options.split != "test" || !options.checkpoint.empty())
    fail_usage(
        "--confused is of the test split and the model as it was trained, beside whose results the report shows it; "
        "leave out --split, --checkpoint, --set, --flip, --routing and --weights");
}

}  // namespace

Json evaluate_run(const EvaluateRunOptions& given, const MakePredictor& make_predictor, dist::Group& group) {
  EvaluateRunOptions options = given;
  if (!group.leads()) options.records.clear(), options.save_routing.clear();
  if (options.confused) check_confused_options(options);
  std::unique_ptr<RecordWriter> records;
  if (!options.records.empty()) records = std::make_unique<RecordWriter>(options.records);
  if (!options.save_routing.empty()) const AtomicFile writable(options.save_routing);
  const EvaluationSetup setup(options, make_predictor);
  const LoadedModel& loaded = setup.loaded;
  const DataSetPtr& data = setup.data;
  RouterMeasures measures(loaded.super_class_of, loaded.expert_weights);
  const auto loader =
      evaluation_loader(data, loaded.eval_transforms, read_section<LoaderOptions>(loaded.config, "loader"));
  std::vector<EvaluationObserver*> observers{&measures};
  if (records) records->add_super_classes(loaded.super_class_of, loaded.data.super_classes);
  if (records) observers.push_back(records.get());
  std::optional<RoutingObserver> routings;
  if (!options.save_routing.empty()) observers.push_back(&routings.emplace(options.save_routing));
  if (options.confused) need_single_labels(data->info(), "--confused");
  ConfusedImages confused(loaded.task_loss);
  if (options.confused) observers.push_back(&confused);
  const RoutingReplay replay = read_replay(options.routing, data->size(), cat("the split has ", data->size()));
  const Predictor model = [&](ModelInput input) {
    input.routings = replay.of(input.info.image);
    return setup.predictor(input);
  };
  PhasePeaks memory;
  Evaluation evaluation =
      evaluate(model, *loader, loaded.shape.classes, loaded.task_loss, setup.bf16, "evaluate", observers, group);
  measures.put_into(evaluation);
  evaluation.peak_bytes = memory.bytes();
  check_evaluation(evaluation, setup, options.split);
  if (records) {
    records->commit({data->info(), options.split, loaded.path, loaded.step, loaded.weights, loaded.config});
    log_info("wrote records of ", records->images(), " images, ", records->bytes() / records->images(),
             " bytes each, into ", printable(options.records));
  }
  if (routings) {
    Json source = routing_source(loaded);
    source.update({{"data", data->info().name},
                   {"split", options.split},
                   {"classes", printable_names(data->info().classes)},
                   {"domains", printable_names(data->info().domains)}});
    routings->record.commit(source);
  }
  Json line = metrics_line(evaluation, options.split, loaded.weights, loaded.step);
  if (options.flip) line["flip"] = true;
  if (tests_on_validation(setup.splits, options.split)) line["same_as"] = "val";
  if (options.confused && group.leads()) {
    const std::string file = RunFolder::open(options.path).confused();
    write_confused(file, confused, *data, line);
    log_info("wrote ", printable(file), "; sparsight report ", printable(options.path), " shows it");
  }
  return line;
}

Json evaluate_run(const EvaluateRunOptions& options, const MakePredictor& make_predictor) {
  dist::Group alone;
  return evaluate_run(options, make_predictor, alone);
}

Json evaluate_run(const EvaluateRunOptions& options) {
  return evaluate_run(options, [](const LoadedModel& loaded) -> Predictor {
    return [&loaded](const ModelInput& input) { return loaded.forward(input); };
  });
}

}  // namespace sparsight
