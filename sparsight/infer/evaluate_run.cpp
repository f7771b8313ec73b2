#include "sparsight/infer/evaluate_run.h"

#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "sparsight/catalogue/run_options.h"
#include "sparsight/catalogue/train_options.h"
#include "sparsight/core/config.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/log.h"
#include "sparsight/core/machine.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/register_data.h"
#include "sparsight/dist/group.h"
#include "sparsight/eval/evaluate.h"
#include "sparsight/eval/mirrored_view.h"
#include "sparsight/eval/record_writer.h"
#include "sparsight/eval/router_measures.h"
#include "sparsight/infer/bare_weights.h"
#include "sparsight/infer/named_split.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/models/routing_file.h"
#include "sparsight/models/routing_record.h"
#include "sparsight/optim/precision.h"

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

}  // namespace

Json evaluate_run(const EvaluateRunOptions& given, const MakePredictor& make_predictor, dist::Group& group) {
  EvaluateRunOptions options = given;
  if (!group.leads()) options.records.clear(), options.save_routing.clear();
  std::unique_ptr<RecordWriter> records;
  if (!options.records.empty()) records = std::make_unique<RecordWriter>(options.records);
  if (!options.save_routing.empty()) const AtomicFile writable(options.save_routing);
  LoadedModel loaded = load_model_or_weights({options.path, options.checkpoint, options.overrides, options.bare});
  const Predictor predictor = options.flip ? with_mirrored_view(make_predictor(loaded)) : make_predictor(loaded);
  RouterMeasures measures(loaded.super_class_of, loaded.expert_weights);
  const Json& config = loaded.config;
  const RunOptions run = read_section<RunOptions>(config, "run");
  apply_threads(run);
  const DataSplits splits = make_component(data_sets(), config, "data", DataContext{static_cast<uint64_t>(run.seed)});
  const DataSetPtr data = named_split(splits, options.split);
  if (!data || data->size() == 0) fail("the dataset has no ", options.split, " split; choose another with --split");
  check_classes(loaded, data->info());
  const auto loader = evaluation_loader(data, loaded.eval_transforms, read_section<LoaderOptions>(config, "loader"));
  const bool bf16 =
      loaded.model && options.weights.empty() && use_bf16(read_section<TrainOptions>(config, "train").precision);
  if (!bf16) compile(loaded, data->size(), options.weights);  // bf16 rounds plain weights
  std::vector<EvaluationObserver*> observers{&measures};
  if (records) records->add_super_classes(loaded.super_class_of, loaded.data.super_classes);
  if (records) observers.push_back(records.get());
  std::optional<RoutingObserver> routings;
  if (!options.save_routing.empty()) observers.push_back(&routings.emplace(options.save_routing));
  const RoutingReplay replay = read_replay(options.routing, data->size(), cat("the split has ", data->size()));
  const Predictor model = [&](ModelInput input) {
    input.routings = replay.of(input.info.image);
    return predictor(input);
  };
  PhasePeaks memory;
  Evaluation evaluation =
      evaluate(model, *loader, loaded.shape.classes, loaded.task_loss, bf16, "evaluate", observers, group);
  measures.put_into(evaluation);
  evaluation.peak_bytes = memory.bytes();
  if (interrupted()) fail("interrupted after ", evaluation.images, " images");
  if (!std::isfinite(evaluation.loss))
    fail("the loss of ", loaded.path, " on the ", options.split,
         " split is not finite; the checkpoint is damaged, its training failed, or an image's values are out of range");
  if (evaluation.unreadable > 0)
    log_warning(evaluation.unreadable, " of the ", data->size(), " images of the ", options.split,
                " split could not be read and were left out");
  if (records) {
    records->commit({data->info(), options.split, loaded.path, loaded.step, loaded.weights, config});
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
  if (tests_on_validation(splits, options.split)) line["same_as"] = "val";
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
