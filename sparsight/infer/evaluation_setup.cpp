#include "sparsight/infer/evaluation_setup.h"

#include <cmath>

#include "sparsight/catalogue/run_options.h"
#include "sparsight/catalogue/train_options.h"
#include "sparsight/core/config.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/log.h"
#include "sparsight/data/register_data.h"
#include "sparsight/eval/mirrored_view.h"
#include "sparsight/infer/bare_weights.h"
#include "sparsight/infer/named_split.h"
#include "sparsight/optim/precision.h"

namespace sparsight {

EvaluationSetup::EvaluationSetup(const EvaluateRunOptions& options, const MakePredictor& make_predictor)
    : loaded(load_model_or_weights({options.path, options.checkpoint, options.overrides, options.bare,
                                    /*needs_data=*/true, options.pack_cache})) {
  predictor = options.flip ? with_mirrored_view(make_predictor(loaded)) : make_predictor(loaded);
  const Json& config = loaded.config;
  const RunOptions run = read_section<RunOptions>(config, "run");
  apply_threads(run);
  splits = make_component(data_sets(), config, "data", DataContext{static_cast<uint64_t>(run.seed)});
  data = named_split(splits, options.split);
  if (!data || data->size() == 0) fail("the dataset has no ", options.split, " split; choose another with --split");
  check_classes(loaded, data->info());
  bf16 = loaded.model && options.weights.empty() && use_bf16(read_section<TrainOptions>(config, "train").precision);
  if (!bf16) compile(loaded, data->size(), options.weights);  // bf16 rounds plain weights
}

void check_evaluation(const Evaluation& evaluation, const EvaluationSetup& setup, const std::string& split, bool warn) {
  if (interrupted()) fail("interrupted after ", evaluation.images, " images");
  if (!std::isfinite(evaluation.loss))
    fail("the loss of ", setup.loaded.path, " on the ", split,
         " split is not finite; the checkpoint is damaged, its training failed, or an image's values are out of range");
  if (warn && evaluation.unreadable > 0)
    log_warning(evaluation.unreadable, " of the ", setup.data->size(), " images of the ", split,
                " split could not be read and were left out");
}

}  // namespace sparsight
