#include "sparsight/train/trainer.h"

#include <algorithm>
#include <numeric>

#include "sparsight/catalogue/dist_options.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/log.h"
#include "sparsight/core/progress.h"
#include "sparsight/data/data_info_json.h"
#include "sparsight/eval/guidance.h"
#include "sparsight/eval/router_measures.h"
#include "sparsight/eval/superclass_division.h"
#include "sparsight/io/part_files.h"
#include "sparsight/io/weights.h"
#include "sparsight/models/make_model.h"
#include "sparsight/moe/setting_schedule.h"
#include "sparsight/optim/precision.h"
#include "sparsight/report/format.h"
#include "sparsight/train/checkpoint_by_rank.h"
#include "sparsight/train/spread_checkpoint.h"

namespace sparsight {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Exactly the tensors of `weights`, no more and no less.
void set_weights(ImageModel& model, const NamedTensors& weights) {
  LoadOptions options;
  options.strict = true;
  load_weights(model, add_missing_buffers(weights, model), options);
}

void add_prediction_tensors(NamedTensors& training, const Algorithm& algorithm) {
  for (const auto& [name, tensor] : algorithm.prediction_tensors())
    training.emplace_back(cat(kPredictionTensors, name), tensor);
}

// Averages in older checkpoints have no pixel statistics; they get those of the model.
void complete_averages(NamedTensors& training, const ImageModel& model) {
  const NamedTensors averages = tensors_under(kAverageTensors, training);
  if (averages.empty()) return;
  const NamedTensors complete = add_missing_buffers(averages, model);
  for (size_t i = averages.size(); i < complete.size(); ++i)
    training.emplace_back(std::string(kAverageTensors) + complete[i].first, complete[i].second);
}

}  // namespace

Trainer::Trainer(TrainingSetup setup, RunFolder folder)
    : setup_(std::move(setup)),
      folder_(std::move(folder)),
      spread_(*setup_.model),
      bf16_(use_bf16(setup_.train.precision)),
      writes_parts_(dist_options(setup_.config).checkpoint_parts),
      session_start_(std::chrono::steady_clock::now()),
      last_checkpoint_(session_start_) {}

int64_t Trainer::epoch() const { return progress_.step / setup_.length.steps_per_epoch; }

double Trainer::seconds() const { return progress_.seconds + seconds_since(session_start_); }

double Trainer::progress_at(int64_t step) const {
  return static_cast<double>(step) / static_cast<double>(std::max<int64_t>(1, setup_.length.total_steps));
}

std::string Trainer::status() const {
  const int64_t per_epoch = setup_.length.steps_per_epoch;
  const int64_t epochs = std::min(setup_.train.epochs, (setup_.length.total_steps + per_epoch - 1) / per_epoch);
  const int64_t now =
      std::clamp<int64_t>((progress_.step + per_epoch - 1) / per_epoch, 1, std::max<int64_t>(1, epochs));
  return cat("epoch ", now, "/", epochs, headline_.empty() ? "" : "  ", headline_);
}

// Minibatches are numbered across all loaders, steps and epochs, so the loaders' positions follow from the step alone.
// Minibatch m is batch m / L of loader m % L, and trains on rank m % R.
void Trainer::start_loaders() {
  const auto loaders = static_cast<int64_t>(setup_.train_loaders.size());
  const int64_t ranks = setup_.group->size(), first = progress_.step * setup_.train.accumulate * ranks;
  for (int64_t l = 0; l < loaders; ++l)
    for (int64_t batch = first; batch < first + ranks; ++batch) {
      if ((batch * loaders + l) % ranks != setup_.group->rank()) continue;
      setup_.train_loaders[static_cast<size_t>(l)].start(batch, ranks / std::gcd(loaders, ranks));
      break;
    }
}

bool Trainer::stopped() { return stopped_ = stopped_ || setup_.group->any(interrupted()); }

UpdateResult Trainer::update(int64_t& images) {
  std::vector<EndlessLoader>& loaders = setup_.train_loaders;
  const auto ranks = static_cast<size_t>(setup_.group->size());
  auto minibatch = static_cast<size_t>(setup_.group->rank());  // in the step
  Minibatches minibatches(setup_.train.accumulate * static_cast<int64_t>(loaders.size()), [&] {
    Batch batch = loaders[minibatch % loaders.size()].next();
    minibatch += ranks;
    images += batch.labels.size(0);
    return batch;
  });
  UpdateContext context;
  context.random = {static_cast<uint64_t>(setup_.run.seed), static_cast<uint64_t>(progress_.step)};
  context.lr_factor = setup_.schedule(progress_.step);
  context.progress = progress_at(progress_.step);
  apply_setting_schedules(*setup_.model, setup_.setting_schedules, context.progress);
  context.logged = (progress_.step + 1) % setup_.train.log_every == 0;
  UpdateResult result = setup_.algorithm->update(minibatches, context);
  while (minibatches.left() > 0) minibatches.next();
  return result;
}

void Trainer::train_step() {
  const auto start = std::chrono::steady_clock::now();
  setup_.group->set_step(progress_.step + 1);
  int64_t images = 0;
  const UpdateResult result = update(images);
  if (result.not_finite.empty()) {
    const double seconds = seconds_since(start);
    progress_.window.seconds += seconds;
    progress_.window.images += images;
    UpdateTimes& times = progress_.since_evaluation;
    ++times.steps, times.images += images, times.seconds += seconds;
    times.means.add(result.means);
    progress_.window.means.add(result.means);
  } else {
    not_finite(result);
  }
  headline_ = result.means.headline();
  ++progress_.step;
  if (progress_.step % setup_.train.log_every == 0) log_step(result.details);
}

void Trainer::not_finite(const UpdateResult& result) {
  const std::string what = cat(result.not_finite, " is not finite at step ", progress_.step + 1);
  if (setup_.train.on_nan == "stop")
    fail("the ", what, folder_.has_checkpoint("last") ? "; the last good checkpoint is kept in " + folder_.path() : "",
         ". ", result.remedy.empty() ? "Lower optimizer.lr, set train.clip_norm = 1" : result.remedy,
         ", or continue with --on-nan skip");
  log_warning("the ", what, "; the step is skipped");
  metrics_->write({{"kind", "note"}, {"step", progress_.step + 1}, {"text", what + "; skipped"}});
}

void Trainer::log_step(const Json& details) {
  LogWindow& window = progress_.window;
  if (window.means.empty()) return;
  Json line{{"kind", "train"}, {"step", progress_.step}, {"epoch", epoch()}};
  window.means.write_to(line);
  for (const auto& [key, value] : details.items())
    if (!line.contains(key)) line[key] = value;
  line["images_per_s"] = static_cast<double>(window.images) / std::max(1e-9, window.seconds);
  line["seconds"] = seconds();
  metrics_->write(line);
  window = {};
}

bool Trainer::evaluation_due() const {
  const int64_t every = setup_.train.eval_every > 0 ? setup_.train.eval_every : setup_.length.steps_per_epoch;
  const int64_t since_first = progress_.step - setup_.train.eval_offset;
  return setup_.validation_loader && progress_.evaluated_step != progress_.step &&
         ((since_first >= 0 && since_first % every == 0) || progress_.step == setup_.length.total_steps);
}

bool Trainer::checkpoint_due() const {
  if (setup_.train.checkpoint_every > 0 && progress_.step % setup_.train.checkpoint_every == 0) return true;
  if (setup_.train.checkpoint_minutes == 0) return false;
  return setup_.group->any(seconds_since(last_checkpoint_) > 60 * setup_.train.checkpoint_minutes);
}

// The ranks do the same, even where someone removes a file of one of them.
bool Trainer::lacks_checkpoint(const std::string& name) const {
  return setup_.group->any(!folder_.has_checkpoint(name));
}

bool Trainer::out_of_patience() const {
  return setup_.train.patience > 0 && progress_.evaluations_since_best >= setup_.train.patience;
}

// Evaluates the algorithm's predictions with the model's current weights.
Evaluation Trainer::evaluate_model(Loader& loader, const std::string& title, std::vector<EvaluationObserver*> more) {
  RouterMeasures measures(guiding_super_classes(setup_.config, setup_.data), expert_weights(*setup_.model));
  more.push_back(&measures);
  Evaluation evaluation = evaluate([this](const ModelInput& input) { return setup_.algorithm->predict(input); }, loader,
                                   setup_.shape.classes, task_loss_named(setup_.train.task_loss, setup_.data), bf16_,
                                   title, std::move(more), *setup_.group, /*together=*/!spread_.empty());
  measures.put_into(evaluation);
  evaluation.peak_bytes = memory_.end_phase();
  return evaluation;
}

// Means over the updates since the last evaluation; null if there are none.
Json Trainer::updates_before(int64_t peak_bytes) const {
  const UpdateTimes& times = progress_.since_evaluation;
  if (times.steps == 0) return Json();
  Json means = Json::object();
  times.means.write_to(means);
  Json training{{"steps", times.steps},
                {"step_seconds", times.seconds / static_cast<double>(times.steps)},
                {"images_per_s", static_cast<double>(times.images) / std::max(1e-9, times.seconds)},
                {"peak_memory_mb", mebibytes(peak_bytes)}};
  if (means.contains("loss")) training["loss"] = means["loss"];
  return training;
}

std::string Trainer::evaluated_weights() const {
  const WeightAverage* average = setup_.algorithm->weight_average();
  return average ? average->name() : "model";
}

void Trainer::evaluate_and_keep_best() {
  const Json training = updates_before(memory_.end_phase());
  apply_setting_schedules(*setup_.model, setup_.setting_schedules, progress_at(progress_.step));
  WeightAverage::Swap swap(setup_.algorithm->weight_average());
  const Evaluation evaluation = evaluate_model(*setup_.validation_loader, "validate");
  std::optional<Evaluation> monitored;
  if (setup_.monitor_loader) monitored = evaluate_model(*setup_.monitor_loader, "monitor");
  if (stopped()) return;  // incomplete: it is repeated after resuming
  progress_.evaluated_step = progress_.step;
  ++progress_.evaluations_since_best;
  const bool better = evaluation.accuracy > progress_.best_accuracy;
  if (better) {
    progress_.best_accuracy = evaluation.accuracy;
    progress_.evaluations_since_best = 0;
  }
  if (better || setup_.train.keep == "last") {
    progress_.best_step = progress_.step;
    if (!lacks_checkpoint("last")) save_best();  // else after it: see save_evaluated()
  }
  setup_.algorithm->validated(evaluation.loss);
  Json line = metrics_line(evaluation, "val", evaluated_weights(), progress_.step, epoch());
  if (!training.is_null()) line["training"] = training;
  metrics_->write(line);
  progress_.since_evaluation = {};
  if (monitored) metrics_->write(metrics_line(*monitored, "monitor", evaluated_weights(), progress_.step, epoch()));
  log_info("step ", progress_.step, " of ", setup_.length.total_steps, ": validation ",
           evaluation.multi_label ? "precision@1 " : "accuracy ", percent(evaluation.accuracy), ", loss ",
           evaluation.loss,
           evaluation.router_accuracy ? cat(", router accuracy ", percent(*evaluation.router_accuracy)) : "");
}

// The first checkpoint of a run is "last": a run killed after it goes on from there and, where these weights were the
// best, saves them again (resume()). From "best" alone it could not go on.
void Trainer::save_evaluated() {
  const bool first = lacks_checkpoint("last");
  if (first || setup_.train.checkpoint_every == 0 || checkpoint_due()) save_last();
  if (first) save_missing_best();
}

// The best weights, where they are those of this step and not saved.
void Trainer::save_missing_best() {
  const bool are_here = progress_.evaluated_step == progress_.step && progress_.best_step == progress_.step;
  if (are_here && progress_.step > 0 && lacks_checkpoint("best")) save_averaged_best();
}

// Saves the model's current weights: during a Swap, the averaged ones.
void Trainer::save_best() {
  progress_.best_step = progress_.step;
  Checkpoint checkpoint = weights_checkpoint();
  checkpoint.state["weights"] = evaluated_weights();
  add_prediction_tensors(checkpoint.training, *setup_.algorithm);
  write("best", checkpoint);
}

// Tests the weights of the last step where there is no validation split or the best checkpoint was deleted.
void Trainer::ensure_best() {
  if (!lacks_checkpoint("best")) return;
  if (setup_.validation_loader)
    log_warning(folder_.checkpoint("best"), " is missing; using the weights of the last step");
  save_averaged_best();
}

void Trainer::save_averaged_best() {
  WeightAverage::Swap swap(setup_.algorithm->weight_average());
  save_best();
}

Checkpoint Trainer::weights_checkpoint() const {
  Checkpoint checkpoint;
  checkpoint.weights = named_weights(*setup_.model);
  checkpoint.config = setup_.config;
  TrainingProgress progress = progress_;
  progress.seconds = seconds();
  const ImageShape& shape = setup_.shape;
  checkpoint.state = {{"step", progress.step},
                      {"progress", to_json(progress)},
                      {"training_share", progress_at(progress.step)},
                      {"ranks", setup_.group->size()},
                      {"data", to_json(setup_.data)},
                      {"image", {shape.channels, shape.height, shape.width}}};
  return checkpoint;
}

void Trainer::write(const std::string& name, const Checkpoint& checkpoint) const {
  const std::string file = folder_.checkpoint_file(name);
  if (writes_parts_) return write_checkpoint_by_rank(file, checkpoint, spread_, *setup_.group);
  write_checkpoint(file, checkpoint, spread_);
  if (setup_.group->leads()) remove_all_but_file(file);
}

void Trainer::save_last() {
  Checkpoint checkpoint = weights_checkpoint();
  AlgorithmState state = setup_.algorithm->state();
  checkpoint.training = std::move(state.tensors);
  checkpoint.state["algorithm"] = std::move(state.values);
  checkpoint.state["weights"] = "model";
  if (const WeightAverage* average = setup_.algorithm->weight_average()) checkpoint.state["average"] = average->name();
  write("last", checkpoint);
  last_checkpoint_ = std::chrono::steady_clock::now();
}

void Trainer::resume() {
  if (!folder_.has_checkpoint("last")) return;
  const Checkpoint checkpoint = read_checkpoint(folder_.checkpoint("last"), spread_);
  check_trained_superclasses(checkpoint.state, setup_.data);
  progress_ = training_progress_from(checkpoint.state.value("progress", Json()), setup_.length.total_steps);
  set_weights(*setup_.model, checkpoint.weights);
  AlgorithmState state{checkpoint.training, checkpoint.state.value("algorithm", Json::object())};
  complete_averages(state.tensors, *setup_.model);
  setup_.algorithm->load_state(state);
  save_missing_best();
  log_info("resumed at step ", progress_.step, " of ", setup_.length.total_steps);
}

void Trainer::load_best() {
  const Checkpoint best = read_checkpoint(folder_.checkpoint("best"), spread_);
  set_weights(*setup_.model, best.weights);
  load_tensors(setup_.algorithm->prediction_tensors(), {best.training}, kPredictionTensors);
}

TrainingEnd Trainer::run() {
  metrics_.emplace(folder_.metrics(), progress_.step);
  setup_.group->set_step(progress_.step);
  start_loaders();
  Progress bar("train", setup_.length.total_steps, "steps", progress_.step);
  TrainingEnd end = TrainingEnd::finished;
  while (true) {
    if (evaluation_due()) {
      evaluate_and_keep_best();
      if (!stopped()) save_evaluated();
    }
    if (stopped()) {
      save_last();
      return TrainingEnd::interrupted;
    }
    if (progress_.step >= setup_.length.total_steps) break;
    if (out_of_patience() || setup_.algorithm->has_converged()) {
      end = TrainingEnd::stopped_early;
      break;
    }
    train_step();
    bar.update(progress_.step, status());
    if (checkpoint_due() && !evaluation_due()) save_last();  // a step's log lines come before its checkpoint
  }
  bar.finish();
  if (lacks_checkpoint("last")) save_last();  // before "best": see save_evaluated()
  const bool has_result = setup_.algorithm->finish();
  if (has_result) save_averaged_best();
  ensure_best();
  save_last();
  if (end == TrainingEnd::stopped_early)
    metrics_->write({{"kind", "note"},
                     {"step", progress_.step},
                     {"text", setup_.algorithm->has_converged() ? "stopped early: the algorithm has what it needs"
                                                                : "stopped early: patience exhausted"},
                     {"end", true}});
  final_evaluation(has_result);
  return stopped() ? TrainingEnd::interrupted : end;
}

}  // namespace sparsight
