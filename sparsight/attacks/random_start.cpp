#include "sparsight/attacks/random_start.h"

#include <ATen/TensorOperators.h>

#include "sparsight/attacks/per_image.h"
#include "sparsight/attacks/projection.h"
#include "sparsight/core/random.h"
#include "sparsight/ops/random_fill.h"

namespace sparsight {

at::Tensor random_start(const AttackBatch& batch, const AttackContext& context, StartKind kind,
                        const std::string& purpose, int64_t restart, double scale) {
  const at::Tensor& x = batch.pixels;
  const ThreatModel& threat = context.threat;
  const RandomRows rows{x.size(0), x.numel() / x.size(0), batch.image};
  const RandomStream stream(context.seed, "attack." + purpose + ".start", static_cast<uint64_t>(restart));
  at::Tensor direction;
  if (threat.norm == Norm::linf) {
    direction = (2 * uniform_rows(x, rows, stream) - 1).view(x.sizes());
    if (kind == StartKind::surface) direction = direction / per_image(image_norms(direction, Norm::linf), x);
  } else {
    direction = normal_rows(x, rows, stream).view(x.sizes());
    direction = direction / per_image(image_norms(direction, Norm::l2), x);
    if (kind == StartKind::ball) {
      const RandomStream lengths(context.seed, "attack." + purpose + ".length", static_cast<uint64_t>(restart));
      const at::Tensor u = uniform_rows(x, {rows.rows, 1, batch.image}, lengths).squeeze(1);
      direction = direction * per_image(u.pow(1.0 / static_cast<double>(rows.columns)), x);
    }
  }
  return Projection(x, threat)(x + scale * threat.epsilon * direction);
}

}  // namespace sparsight
