#include "sparsight/train/trained_predictor.h"

#include <algorithm>

#include "sparsight/core/config.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/train/algorithm.h"
#include "sparsight/train/run_config.h"

namespace sparsight {
namespace {

// The algorithm with what the checkpoint recorded of it: all of its state in a last one, in a best one what it predicts
// with. Null without either.
std::shared_ptr<Algorithm> trained_algorithm(const LoadedModel& loaded, const Checkpoint& checkpoint) {
  const Json config = resolve(Config::from_tables(checkpoint.config, "its configuration"), config_sections());
  const AlgorithmContext context{config,
                                 read_section<RunOptions>(config, "run"),
                                 read_section<TrainOptions>(config, "train"),
                                 loaded.data,
                                 at::Tensor(),
                                 loaded.model};
  std::shared_ptr<Algorithm> algorithm = make_component(algorithms(), config, "algorithm", context);
  if (checkpoint.state.contains("algorithm"))
    algorithm->load_state({checkpoint.training, checkpoint.state.at("algorithm")});
  else if (!tensors_under(kPredictionTensors, checkpoint.training).empty())
    load_tensors(algorithm->prediction_tensors(), {checkpoint.training}, kPredictionTensors);
  else
    return nullptr;
  return algorithm;
}

}  // namespace

bool predicts_with_more(const LoadedModel& loaded) {
  const std::vector<std::string> known = algorithms().names();
  return loaded.model && std::ranges::find(known, loaded.algorithm) != known.end() &&
         algorithms().facts(loaded.algorithm).predicts;
}

void refuse_more_than_model(const LoadedModel& loaded, const std::string& path, const char* done) {
  if (predicts_with_more(loaded))
    fail(path, " was trained by ", loaded.algorithm,
         ", which predicts with more than the model; only the model alone can be ", done,
         ": train with another algorithm");
}

Predictor trained_predictor(const LoadedModel& loaded) {
  const Predictor plain = [&loaded](const ModelInput& input) { return loaded.forward(input); };
  if (!predicts_with_more(loaded)) return plain;
  if (const auto algorithm = trained_algorithm(loaded, read_checkpoint(loaded.path)))
    return [algorithm](const ModelInput& input) { return algorithm->predict(input); };
  log_warning(printable(loaded.path), " does not have what ", loaded.algorithm,
              " predicts with beside the model; the accuracy is that of the model alone");
  return plain;
}

}  // namespace sparsight
