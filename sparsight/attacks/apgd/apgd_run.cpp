#include "sparsight/attacks/apgd/apgd_run.h"

#include <optional>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include "sparsight/attacks/apgd/apgd_schedule.h"
#include "sparsight/attacks/apgd/sparse_steps.h"
#include "sparsight/attacks/attack_saver.h"
#include "sparsight/attacks/per_image.h"
#include "sparsight/attacks/projection.h"

namespace sparsight {
namespace {

// The state of a run. Everything is per image: [B,...] points and gradients, [B] numbers.
class ApgdState {
 public:
  ApgdState(const ApgdRunOptions& options, const AttackBatch& batch, const ThreatModel& threat, const at::Tensor& start,
            const AttackEvaluation& at_start)
      : options_(options),
        norm_(threat.norm),
        project_(batch.pixels, threat, kNormGuard),
        schedule_(threat.norm == Norm::l1 ? ApgdSchedule::even(options.iterations) : ApgdSchedule(options.iterations)),
        largest_step_((threat.norm == Norm::l1 ? SparseSteps::kInitialStep : options.initial_step) * threat.epsilon),
        x_(start),
        previous_(start),
        gradient_(at_start.gradient),
        loss_(at_start.loss),
        best_(start),
        best_loss_(at_start.loss),
        best_gradient_(at_start.gradient),
        last_fooled_(start),
        fooled_(~at_start.correct),
        step_(at::full_like(at_start.loss, largest_step_)),
        growths_(at::zeros_like(at_start.loss)),
        loss_at_check_(at_start.loss),
        halved_at_check_(at::ones_like(fooled_)) {
    if (threat.norm == Norm::l1) sparse_.emplace(batch.pixels, threat.range);
  }

  // The next point: a step of the current size, and the momentum of the last move.
  const at::Tensor& move(bool first) {
    if (sparse_) return x_ = project_(x_ + per_image(step_, x_) * sparse_->direction(x_, gradient_));
    const double a = first ? 1.0 : options_.momentum;
    const at::Tensor last_move = x_ - previous_;
    previous_ = x_;
    const at::Tensor stepped = project_(x_ + per_image(step_, x_) * ascent_direction(gradient_, norm_, kNormGuard));
    x_ = project_(x_ + a * (stepped - x_) + (1 - a) * last_move);
    return x_;
  }

  void learn(const AttackEvaluation& at_x) {
    growths_ = growths_ + (at_x.loss > loss_).to(growths_.scalar_type());
    loss_ = at_x.loss;
    gradient_ = at_x.gradient;
    last_fooled_ = choose_images(at_x.correct, last_fooled_, x_);
    fooled_ = fooled_ | ~at_x.correct;
    const at::Tensor better = loss_ > best_loss_;
    best_ = choose_images(better, x_, best_);
    best_loss_ = choose_images(better, loss_, best_loss_);
    best_gradient_ = choose_images(better, gradient_, best_gradient_);
    if (const int64_t interval = schedule_.count()) check(interval);
  }

  // For SavedLoop. Its number of iterations goes to skip().
  std::vector<at::Tensor*> state() {
    std::vector<at::Tensor*> all{&x_,         &previous_,      &gradient_,       &loss_,   &best_,
                                 &best_loss_, &best_gradient_, &last_fooled_,    &fooled_, &step_,
                                 &growths_,   &loss_at_check_, &halved_at_check_};
    if (sparse_)
      for (at::Tensor* of_steps : sparse_->state()) all.push_back(of_steps);
    return all;
  }
  void skip(int64_t iterations) {
    for (int64_t i = 0; i < iterations; ++i) schedule_.count();
  }

  ApgdRun result() const { return {best_, best_loss_, fooled_, choose_images(fooled_, last_fooled_, best_)}; }

  const at::Tensor& x() const { return x_; }
  const at::Tensor& best_loss() const { return best_loss_; }
  const at::Tensor& step() const { return step_; }

 private:
  // Halves the step where the loss grew too rarely in the interval, or where neither a halving at the last check nor
  // the best loss has changed anything. `previous_` stays, so the momentum of the next step points from there to the
  // best point.
  void check(int64_t interval) {
    if (sparse_) return check_sparsity();
    const at::Tensor rarely = growths_ <= options_.min_growth * static_cast<double>(interval);
    const at::Tensor stuck = ~halved_at_check_ & (best_loss_ <= loss_at_check_);
    const at::Tensor halve = rarely | stuck;
    halved_at_check_ = halve;
    loss_at_check_ = best_loss_;
    growths_ = at::zeros_like(growths_);
    step_ = at::where(halve, step_ / 2, step_);
    go_on_from_best(halve);
  }

  // Reduces the step, but where the best point has become sparser, the steps begin again.
  void check_sparsity() {
    const at::Tensor sparser = sparse_->check(best_);
    const at::Tensor smaller = (step_ / SparseSteps::kReduction).clamp_min(largest_step_ * SparseSteps::kSmallestStep);
    step_ = at::where(sparser, at::full_like(step_, largest_step_), smaller);
    go_on_from_best(sparser);
  }

  void go_on_from_best(const at::Tensor& which) {
    x_ = choose_images(which, best_, x_);
    gradient_ = choose_images(which, best_gradient_, gradient_);
  }

  const ApgdRunOptions options_;
  const Norm norm_;
  const Projection project_;
  ApgdSchedule schedule_;
  const double largest_step_;
  std::optional<SparseSteps> sparse_;  // within the l1 ball
  at::Tensor x_, previous_, gradient_, loss_;
  at::Tensor best_, best_loss_, best_gradient_;
  at::Tensor last_fooled_, fooled_;
  at::Tensor step_, growths_, loss_at_check_, halved_at_check_;
};

}  // namespace

ApgdRun run_apgd(AttackedModel& model, const Objective& objective, const AttackBatch& batch,
                 const AttackContext& context, const ApgdRunOptions& options, const at::Tensor& start, uint64_t first) {
  const AttackEvaluation at_start = evaluate_objective(model, objective, batch, start, first);
  if (context.observe) context.observe({0, batch.image, start, at_start.loss, at_start.loss, {}});
  ApgdState state(options, batch, context.threat, start, at_start);
  const SavedLoop loop(context.saver, first, state.state());
  const int64_t done = loop.done(options.iterations);
  state.skip(done);
  for (int64_t i = done + 1; i <= options.iterations; ++i) {
    const at::Tensor step = state.step(), x = state.move(i == 1);
    const AttackEvaluation at_x = evaluate_objective(model, objective, batch, x, first + static_cast<uint64_t>(i));
    state.learn(at_x);
    if (context.observe) context.observe({i, batch.image, x, at_x.loss, state.best_loss(), step});
    loop.mark_and_save(i);
  }
  return state.result();
}

}  // namespace sparsight
