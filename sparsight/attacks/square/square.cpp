#include "sparsight/attacks/square/square.h"

#include <ATen/TensorOperators.h>

#include "sparsight/attacks/attack_saver.h"
#include "sparsight/attacks/square/square_l2.h"
#include "sparsight/attacks/square/square_linf.h"
#include "sparsight/attacks/strongest.h"
#include "sparsight/core/error.h"

namespace sparsight {

namespace {

std::unique_ptr<SquareMoves> moves_for(const SquareMovesContext& context) {
  if (context.threat.norm == Norm::linf) return std::make_unique<SquareLinf>(context);
  return std::make_unique<SquareL2>(context);
}

}  // namespace

void SquareOptions::declare(OptionSet& set) {
  set.integer("queries", &queries, {1, 100000000}, "queries of each image after the first one, at most");
  set.real("initial_area", &initial_area, {0, 1}, "share of the image that the first squares cover (p_init)");
  set.integer("restarts", &restarts, {1, 10000}, "number of runs, each from other random stripes");
  set.integer("passes", &passes, {1, 10000}, "passes of a model with noise whose margins are averaged in each query");
  goal.declare(set);
}

at::Tensor Square::perturb(AttackedModel& model, const AttackBatch& batch) const {
  if (batch.pixels.dim() != 4) fail("the square attack takes images of shape [B,C,H,W], got ", batch.pixels.sizes());
  Strongest strongest(batch.pixels, still_withstands(model, batch, batch.pixels, first_step("square.clean", 0)));
  const SavedLoop loop(context().saver, first_step("square.runs", 0), strongest.state());
  for (int64_t restart = loop.done(options_.restarts); restart < options_.restarts; ++restart) {
    const at::Tensor index = images_to_attack(strongest.robust(), model.coupled());
    if (index.size(0) == 0) break;
    StreamedSquareRandom random(context().seed, restart);
    const std::unique_ptr<SquareMoves> moves = moves_for({context().threat, options_.initial_area, &random});
    const SquareRun run = run_square(model, batch.select(index), context(), {options_.queries, options_.passes}, *moves,
                                     first_step("square", restart));
    strongest.offer(index, run.pixels, -run.margin, run.fooled);
    loop.mark(restart + 1);
  }
  return strongest.pixels();
}

}  // namespace sparsight
