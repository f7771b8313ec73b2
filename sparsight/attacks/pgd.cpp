#include "sparsight/attacks/pgd.h"

#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>

#include "sparsight/attacks/attack_saver.h"
#include "sparsight/attacks/l1_ball.h"
#include "sparsight/attacks/per_image.h"
#include "sparsight/attacks/projection.h"
#include "sparsight/attacks/random_start.h"
#include "sparsight/core/error.h"

namespace sparsight {

void PgdOptions::declare(OptionSet& set) {
  set.choice("preset", &preset, {"strict", "paper"},
             "strict projects each step and returns the strongest iterate; paper (Puigcerver et al.) takes steps of "
             "epsilon / steps, neither projects nor clips, and returns the last iterate");
  set.integer("steps", &steps, {1, 1000000}, "number of steps");
  set.real("relative_step", &relative_step, {0, 1000},
           "step size divided by epsilon; 0: 1 / steps with preset = paper, 2.5 / steps with strict");
  set.choice("start", &start, {"none", "ball", "surface"},
             "where the first run starts: at the image, at a uniform point of the ball, or on its surface");
  set.integer("restarts", &restarts, {1, 10000}, "number of runs; all but the first start at random");
  set.choice("keep", &keep, {"preset", "fooled", "loss", "last"},
             "which iterate is returned: a misclassified one, then that of the largest loss (strict); that of the "
             "largest loss; or the last one (paper)");
  set.real("sparsity", &sparsity, {0, 1},
           "share of an image's pixel values that a step changes with the norm l1, those of the largest gradients; at "
           "least one");
  objective.declare(set);
  goal.declare(set);
}

// The iterate to return, so far. `none` at first: the first one offered is taken.
struct Pgd::Best {
  std::string rule;
  at::Tensor pixels = {}, loss = {}, correct = {};  // [B,...], [B], [B] bool

  std::vector<at::Tensor*> state() { return {&pixels, &loss, &correct}; }  // for SavedLoop

  void offer(const at::Tensor& x, const AttackEvaluation& at_x) {
    if (!pixels.defined() || rule == "last") {
      pixels = x, loss = at_x.loss, correct = at_x.correct;
      return;
    }
    at::Tensor better = at_x.loss > loss;
    if (rule == "fooled") better = (correct & ~at_x.correct) | (better & (correct == at_x.correct));
    pixels = choose_images(better, x, pixels);
    loss = choose_images(better, at_x.loss, loss);
    correct = choose_images(better, at_x.correct, correct);
  }
};

Pgd::Pgd(const PgdOptions& options, AttackContext context)
    : Attack(std::move(context)),
      options_(options),
      objective_(make_objective(options.objective)),
      strict_(options.preset == "strict") {
  if (!strict_ &&
      (options.start != "none" || options.restarts > 1 || options.relative_step > 0 || options.keep != "preset"))
    fail_usage("the preset paper of pgd has no start, restarts, relative_step or keep; use preset = \"strict\"");
  if (options_.keep == "preset") options_.keep = strict_ ? "fooled" : "last";
  const double relative =
      options.relative_step > 0 ? options.relative_step : (strict_ ? 2.5 : 1.0) / static_cast<double>(options.steps);
  step_ = relative * this->context().threat.epsilon;
}

at::Tensor Pgd::start(const AttackBatch& batch, int64_t restart) const {
  if (options_.start == "none" && restart == 0) return batch.pixels;
  const StartKind kind = options_.start == "surface" ? StartKind::surface : StartKind::ball;
  return random_start(batch, context(), kind, "pgd", restart);
}

at::Tensor Pgd::next(const Projection& project, const at::Tensor& image, const at::Tensor& x,
                     const at::Tensor& gradient) const {
  const ThreatModel& threat = context().threat;
  if (threat.norm != Norm::l1)
    return strict_ ? project.step(x, gradient, step_) : x + step_ * ascent_direction(gradient, threat.norm);
  const auto share = options_.sparsity * static_cast<double>(x.numel() / x.size(0));
  const at::Tensor count = at::full({x.size(0)}, std::max<int64_t>(1, std::llround(share)), at::kLong);
  if (!strict_) return x + step_ * sparse_ascent(gradient, count);
  return project(x + step_ * sparse_ascent(movable_gradient(gradient, x, image, threat.range), count));
}

void Pgd::run_once(AttackedModel& model, const AttackBatch& batch, int64_t restart, Best& best) const {
  const Projection project(batch.pixels, context().threat);
  const uint64_t first = first_step("pgd", restart);
  const at::Tensor step_size = at::full({batch.pixels.size(0)}, step_, at::kDouble);
  at::Tensor x = start(batch, restart);
  AttackEvaluation at_x = evaluate_objective(model, objective_, batch, x, first);
  best.offer(x, at_x);
  at::Tensor best_loss = at_x.loss;
  if (context().observe) context().observe({0, batch.image, x, at_x.loss, best_loss, {}});
  const SavedLoop loop(context().saver, first, {&x, &at_x.gradient, &best.pixels, &best.loss, &best.correct});
  for (int64_t t = loop.done(options_.steps) + 1; t <= options_.steps; ++t) {
    x = next(project, batch.pixels, x, at_x.gradient);
    const uint64_t step = first + static_cast<uint64_t>(t);
    const bool last = t == options_.steps;
    if (last && options_.keep == "last" && !context().observe) {
      best.offer(x, {});
      break;
    }
    at_x =
        last ? evaluate_loss(model, objective_, batch, x, step) : evaluate_objective(model, objective_, batch, x, step);
    best.offer(x, at_x);
    best_loss = at::maximum(best_loss, at_x.loss);
    if (context().observe) context().observe({t, batch.image, x, at_x.loss, best_loss, step_size});
    loop.mark_and_save(t);
  }
}

at::Tensor Pgd::perturb(AttackedModel& model, const AttackBatch& batch) const {
  Best best{options_.keep};
  // An image that is misclassified as it is must stay so.
  if (options_.keep == "fooled" && options_.start != "none")
    best.offer(batch.pixels, evaluate_loss(model, objective_, batch, batch.pixels, first_step("pgd.clean", 0)));
  const SavedLoop loop(context().saver, first_step("pgd.runs", 0), best.state());
  for (int64_t restart = loop.done(options_.restarts); restart < options_.restarts; ++restart) {
    run_once(model, batch, restart, best);
    loop.mark(restart + 1);
  }
  // The steps of the attack that never projects add up to epsilon, but for rounding.
  return strict_ ? best.pixels : Projection(batch.pixels, context().threat).to_ball(best.pixels);
}

}  // namespace sparsight
