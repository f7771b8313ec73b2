#include "sparsight/attacks/square/square_run.h"

#include <ATen/TensorOperators.h>

#include "sparsight/attacks/attack_saver.h"
#include "sparsight/attacks/per_image.h"
#include "sparsight/attacks/routed/objective.h"

namespace sparsight {
namespace {

SquareRun query_model(AttackedModel& model, const AttackBatch& batch, const at::Tensor& x, int64_t passes,
                      uint64_t step) {
  const AttackEvaluation at_x = evaluate_loss(model, {.loss = attack_loss::margin, .passes = passes}, batch, x, step);
  return {x, -at_x.loss, ~at_x.correct};
}

}  // namespace

SquareRun run_square(AttackedModel& model, const AttackBatch& batch, const AttackContext& context,
                     const SquareRunOptions& options, SquareMoves& moves, uint64_t first) {
  SquareRun run = query_model(model, batch, moves.start(batch), options.passes, first);
  const SavedLoop loop(context.saver, first, {&run.pixels, &run.margin, &run.fooled});
  for (int64_t query = loop.done(options.queries); query < options.queries; ++query) {
    const at::Tensor index = images_to_attack(run.margin > 0, model.coupled());
    if (index.size(0) == 0) break;
    const AttackBatch left = batch.select(index);
    const at::Tensor margin = run.margin.index_select(0, index);
    const at::Tensor moved = moves.propose(left, run.pixels.index_select(0, index), query);
    const SquareRun found = query_model(model, left, moved, options.passes, first + 1 + static_cast<uint64_t>(query));
    const at::Tensor accepted = (margin > 0) & ((found.margin < margin) | (found.margin <= 0));
    const auto accept = [&](at::Tensor& all, const at::Tensor& values) {
      all.index_copy_(0, index, choose_images(accepted, values, all.index_select(0, index)));
    };
    accept(run.pixels, found.pixels);
    accept(run.margin, found.margin);
    accept(run.fooled, found.fooled);
    if (context.observe)
      context.observe({query + 1, left.image, moved, -found.margin, -run.margin.index_select(0, index), {}});
    loop.mark_and_save(query + 1);
  }
  return run;
}

}  // namespace sparsight
