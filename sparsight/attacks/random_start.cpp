#include "sparsight/attacks/random_start.h"

#include <ATen/TensorOperators.h>

#include "sparsight/attacks/per_image.h"
#include "sparsight/attacks/projection.h"
#include "sparsight/core/random.h"
#include "sparsight/ops/random_fill.h"

namespace sparsight {
namespace {

// Laplacian numbers from `u`, uniform in -1..1. A vector of them, divided by its l1 norm, is uniform on the surface of
// the ball.
at::Tensor laplacian(const at::Tensor& u) {
  constexpr double kBelowOne = 1 - 1e-9;  // u can be -1
  const at::Tensor wide = u.to(at::kDouble).clamp(-kBelowOne, kBelowOne);
  return (-wide.sign() * (-wide.abs()).log1p()).to(u.scalar_type());
}

}  // namespace

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
  } else if (threat.norm == Norm::l1 && kind == StartKind::surface) {
    const ThreatModel scaled{threat.norm, scale * threat.epsilon, threat.range};
    return Projection(x, scaled)(x + normal_rows(x, rows, stream).view(x.sizes()));
  } else {
    direction =
        threat.norm == Norm::l1 ? laplacian(2 * uniform_rows(x, rows, stream) - 1) : normal_rows(x, rows, stream);
    direction = direction.view(x.sizes());
    direction = direction / per_image(image_norms(direction, threat.norm), x);
    if (kind == StartKind::ball) {
      const RandomStream lengths(context.seed, "attack." + purpose + ".length", static_cast<uint64_t>(restart));
      const at::Tensor u = uniform_rows(x, {rows.rows, 1, batch.image}, lengths).squeeze(1);
      direction = direction * per_image(u.pow(1.0 / static_cast<double>(rows.columns)), x);
    }
  }
  return Projection(x, threat)(x + scale * threat.epsilon * direction);
}

}  // namespace sparsight
