#include "sparsight/train/trainer.h"

#include <sys/resource.h>

#include <cmath>

#include "sparsight/analysis/routing_accumulator.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/log.h"
#include "sparsight/core/progress.h"
#include "sparsight/data/data_info_json.h"
#include "sparsight/io/weights.h"
#include "sparsight/models/make_model.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/train/gradients.h"
#include "sparsight/train/guidance.h"
#include "sparsight/train/precision.h"
#include "sparsight/train/task_loss.h"

namespace sparsight {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double peak_memory_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// Exactly the tensors of `weights`, no more and no less.
void set_weights(ImageModel& model, const NamedTensors& weights) {
  LoadOptions options;
  options.strict = true;
  load_weights(model, with_pixel_statistics(weights, model), options);
}

std::string percent(double fraction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", 100 * fraction);
  return text;
}

}  // namespace

Trainer::Trainer(TrainingSetup setup, RunFolder folder)
    : setup_(std::move(setup)),
      folder_(std::move(folder)),
      keeps_routings_(learns_from_routings(*setup_.model)),
      bf16_(use_bf16(setup_.train.precision)),
      session_start_(std::chrono::steady_clock::now()),
      last_checkpoint_(session_start_) {
  for (const OptimizedParameter& parameter : setup_.optimizer->parameters()) trainable_.push_back(parameter.value);
  if (setup_.train.ema_decay > 0) average_.emplace(named_weights(*setup_.model), setup_.train.ema_decay);
}

int64_t Trainer::epoch() const { return progress_.step / setup_.length.steps_per_epoch; }

double Trainer::seconds() const { return progress_.seconds + seconds_since(session_start_); }

std::string Trainer::status() const {
  const int64_t per_epoch = setup_.length.steps_per_epoch;
  const int64_t epochs = std::min(setup_.train.epochs, (setup_.length.total_steps + per_epoch - 1) / per_epoch);
  const int64_t now =
      std::clamp<int64_t>((progress_.step + per_epoch - 1) / per_epoch, 1, std::max<int64_t>(1, epochs));
  char text[64];
  std::snprintf(text, sizeof text, "epoch %lld/%lld  loss %.3f", static_cast<long long>(now),
                static_cast<long long>(epochs), last_loss_);
  return text;
}

// Batches are numbered through all epochs, so the loader's position follows from the step alone.
Batch Trainer::next_batch() {
  if (std::optional<Batch> batch = setup_.train_loader->next()) return std::move(*batch);
  setup_.train_loader->start(setup_.train_loader->epoch() + 1);
  return setup_.train_loader->next().value();
}

// The batches of a step count as one whose images are numbered through: draws do not depend on how it is split.
LogWindow Trainer::forward_backward(const Batch& batch, int64_t first_image) {
  ModelOutput output;
  {
    AutocastScope autocast(bf16_);
    const StepRandom random{static_cast<uint64_t>(setup_.run.seed), static_cast<uint64_t>(progress_.step)};
    const at::Tensor numbers = at::arange(first_image, first_image + batch.labels.size(0));
    output =
        setup_.model->forward({.images = batch.images,
                               .mode = ForwardMode::training(),
                               .random = random,
                               .info = {.image = numbers, .target = super_class_targets(batch, setup_.super_classes)}});
  }
  const at::Tensor task = task_loss(output.logits, batch);
  at::Tensor total = setup_.train.task_weight * task;
  LogWindow sums;
  for (const NamedLoss& loss : output.losses) {
    total = total + loss.weight * loss.value;
    sums.auxiliary[loss.name] += loss.value.item<double>();
  }
  if ((progress_.step + 1) % setup_.train.log_every == 0) balance_ = routing_balance(output.routings);
  if (keeps_routings_)
    for (Routing& routing : output.routings) routings_.push_back(detached(std::move(routing)));
  sums.batches = 1;
  sums.images = batch.labels.size(0);
  sums.correct = count_correct(output.logits.detach(), batch.labels);
  sums.task_loss = task.item<double>();
  sums.loss = total.item<double>();
  if (std::isfinite(sums.loss)) (total / setup_.train.accumulate).backward();
  return sums;
}

void Trainer::train_step() {
  const auto start = std::chrono::steady_clock::now();
  const double lr = setup_.base_lr * setup_.schedule(progress_.step);
  setup_.optimizer->zero_grad();
  routings_.clear();
  LogWindow sums;
  for (int64_t part = 0; part < setup_.train.accumulate; ++part) sums.add(forward_backward(next_batch(), sums.images));
  const double norm = gradient_norm(trainable_);
  if (std::isfinite(sums.loss) && std::isfinite(norm)) {
    if (setup_.train.clip_norm > 0) clip_gradients(trainable_, norm, setup_.train.clip_norm);
    setup_.optimizer->step(lr);
    after_step(*setup_.model, routings_);
    if (average_) average_->update(progress_.step);
    sums.seconds = seconds_since(start);
    progress_.window.add(sums);
  } else {
    const std::string what =
        cat(std::isfinite(sums.loss) ? "gradient" : "loss", " is not finite at step ", progress_.step + 1);
    if (setup_.train.on_nan == "stop")
      fail("the ", what, "; the last good checkpoint is kept in ", folder_.path(),
           ". Lower optimizer.lr, set train.clip_norm = 1, or go on with --on-nan skip");
    log_warning("the ", what, "; the step is skipped");
    metrics_->write({{"kind", "note"}, {"step", progress_.step + 1}, {"text", what + "; skipped"}});
  }
  last_loss_ = sums.loss / static_cast<double>(sums.batches);
  ++progress_.step;
  if (progress_.step % setup_.train.log_every == 0) log_step(lr);
}

void Trainer::log_step(double lr) {
  LogWindow& window = progress_.window;
  if (window.batches == 0) return;
  const double batches = static_cast<double>(window.batches), images = static_cast<double>(window.images);
  Json losses = Json::object();
  for (const auto& [name, sum] : window.auxiliary) losses[name] = sum / batches;
  metrics_->write({{"kind", "train"},
                   {"step", progress_.step},
                   {"epoch", epoch()},
                   {"loss", window.loss / batches},
                   {"task_loss", window.task_loss / batches},
                   {"losses", losses},
                   {"accuracy", static_cast<double>(window.correct) / images},
                   {"lr", lr},
                   {"layers", balance_},
                   {"images_per_s", images / std::max(1e-9, window.seconds)},
                   {"seconds", seconds()}});
  window = {};
}

bool Trainer::evaluation_due() const {
  const int64_t every = setup_.train.eval_every > 0 ? setup_.train.eval_every : setup_.length.steps_per_epoch;
  return setup_.validation_loader && progress_.evaluated_step != progress_.step &&
         (progress_.step % every == 0 || progress_.step == setup_.length.total_steps);
}

bool Trainer::checkpoint_due() const {
  if (setup_.train.checkpoint_every > 0 && progress_.step % setup_.train.checkpoint_every == 0) return true;
  return setup_.train.checkpoint_minutes > 0 && seconds_since(last_checkpoint_) > 60 * setup_.train.checkpoint_minutes;
}

bool Trainer::out_of_patience() const {
  return setup_.train.patience > 0 && progress_.evaluations_since_best >= setup_.train.patience;
}

void Trainer::evaluate_and_keep_best() {
  WeightAverage::Swap swap(average_ ? &*average_ : nullptr);
  const Evaluation evaluation =
      evaluate(*setup_.model, *setup_.validation_loader, setup_.shape.classes, bf16_, "validate");
  if (interrupted()) return;  // cut short: it is repeated after resuming
  progress_.evaluated_step = progress_.step;
  ++progress_.evaluations_since_best;
  const bool better = evaluation.accuracy > progress_.best_accuracy;
  if (better) {
    progress_.best_accuracy = evaluation.accuracy;
    progress_.evaluations_since_best = 0;
  }
  if (better || setup_.train.keep == "last") save_best();
  metrics_->write(metrics_line(evaluation, "val", average_ ? "ema" : "model", progress_.step, epoch()));
  log_info("step ", progress_.step, " of ", setup_.length.total_steps, ": validation accuracy ",
           percent(evaluation.accuracy), ", loss ", evaluation.loss);
}

// The model's weights as they are: under a Swap, the averaged ones.
void Trainer::save_best() {
  progress_.best_step = progress_.step;
  write_checkpoint(folder_.checkpoint("best"), weights_checkpoint());
}

// Where nothing was validated or somebody removed the best weights, those of the last step stand in.
void Trainer::ensure_best() {
  if (folder_.has_checkpoint("best")) return;
  if (setup_.validation_loader)
    log_warning(folder_.checkpoint("best"), " is gone; the weights of the last step take its place");
  WeightAverage::Swap swap(average_ ? &*average_ : nullptr);
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
                      {"data", to_json(setup_.data)},
                      {"image", {shape.channels, shape.height, shape.width}}};
  return checkpoint;
}

void Trainer::save_last() {
  Checkpoint checkpoint = weights_checkpoint();
  const auto keep = [&checkpoint](std::string_view prefix, const NamedTensors& tensors) {
    for (const auto& [name, tensor] : tensors) checkpoint.training.emplace_back(std::string(prefix) + name, tensor);
  };
  keep(kOptimizerTensors, setup_.optimizer->state());
  if (average_) keep(kAverageTensors, average_->tensors());
  write_checkpoint(folder_.checkpoint("last"), checkpoint);
  last_checkpoint_ = std::chrono::steady_clock::now();
}

void Trainer::resume() {
  if (!folder_.has_checkpoint("last")) return;
  const Checkpoint checkpoint = read_checkpoint(folder_.checkpoint("last"));
  set_weights(*setup_.model, checkpoint.weights);
  setup_.optimizer->load_state(tensors_under(kOptimizerTensors, checkpoint.training));
  if (average_)
    average_->load(with_pixel_statistics(tensors_under(kAverageTensors, checkpoint.training), *setup_.model));
  progress_ = training_progress_from(checkpoint.state.at("progress"));
  log_info("resumed at step ", progress_.step, " of ", setup_.length.total_steps);
}

bool Trainer::tests_on_validation() const {
  return setup_.validation_loader && &setup_.validation_loader->data() == &setup_.test_loader->data();
}

void Trainer::final_evaluation() {
  set_weights(*setup_.model, read_checkpoint(folder_.checkpoint("best")).weights);
  const Evaluation evaluation = evaluate(*setup_.model, *setup_.test_loader, setup_.shape.classes, bf16_, "test");
  if (interrupted()) return;
  Json line = metrics_line(evaluation, "test", average_ ? "ema" : "model", progress_.best_step, epoch());
  if (tests_on_validation()) line["same_as"] = "val";
  metrics_->write(line);
  if (tests_on_validation()) {
    const std::string text = cat("this run has no test part of its own: \"test\" is the validation part",
                                 setup_.train.keep == "best" ? ", on which the best weights were chosen" : "");
    log_warning(text);
    metrics_->write({{"kind", "note"}, {"split", "test"}, {"step", progress_.step}, {"text", text}});
  }
  metrics_->write({{"kind", "done"},
                   {"step", progress_.step},
                   {"best_step", progress_.best_step},
                   {"seconds", seconds()},
                   {"peak_memory_mb", peak_memory_mb()}});
  folder_.mark_done();
}

TrainingEnd Trainer::run() {
  metrics_.emplace(folder_.metrics(), progress_.step);
  Loader& loader = *setup_.train_loader;
  const int64_t batches = loader.batches_per_epoch(), first = progress_.step * setup_.train.accumulate;
  loader.start(first / batches, first % batches);
  Progress bar("train", setup_.length.total_steps, "steps", progress_.step);
  TrainingEnd end = TrainingEnd::finished;
  while (true) {
    if (evaluation_due()) {
      evaluate_and_keep_best();
      if (setup_.train.checkpoint_every == 0 || checkpoint_due()) save_last();
    }
    if (interrupted()) {
      save_last();
      return TrainingEnd::interrupted;
    }
    if (progress_.step >= setup_.length.total_steps) break;
    if (out_of_patience()) {
      end = TrainingEnd::stopped_early;
      break;
    }
    train_step();
    bar.update(progress_.step, status());
    if (checkpoint_due() && !evaluation_due()) save_last();  // the lines of a step come before its checkpoint
  }
  bar.finish();
  ensure_best();
  save_last();
  if (end == TrainingEnd::stopped_early)
    metrics_->write(
        {{"kind", "note"}, {"step", progress_.step}, {"text", "stopped early: patience is used up"}, {"end", true}});
  final_evaluation();
  return interrupted() ? TrainingEnd::interrupted : end;
}

}  // namespace sparsight
