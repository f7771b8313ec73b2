#include "sparsight/nn/position_embedding.h"

#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/upsample_bilinear2d.h>

#include "sparsight/core/error.h"

namespace sparsight {

at::Tensor resample_position_embedding(const at::Tensor& embedding, int64_t prefix, PatchGrid from, PatchGrid to,
                                       Resampling resampling) {
  if (embedding.dim() != 3 || embedding.size(0) != 1 || embedding.size(1) != prefix + from.height * from.width)
    fail("position embedding has shape ", embedding.sizes(), ", expected [1, ", prefix + from.height * from.width,
         ", D] for ", prefix, " prefix tokens and ", from.height, "x", from.width, " patches");
  if (from.height < 1 || from.width < 1 || to.height < 1 || to.width < 1 || prefix < 0)
    fail("cannot resample a position embedding from ", from.height, "x", from.width, " to ", to.height, "x", to.width,
         " patches");
  if (from == to) return embedding;
  const int64_t width = embedding.size(2);
  const at::Tensor grid = embedding.narrow(1, prefix, from.height * from.width)
                              .to(embedding.scalar_type() == at::kDouble ? at::kDouble : at::kFloat)
                              .reshape({1, from.height, from.width, width})
                              .permute({0, 3, 1, 2});
  const at::Tensor interpolated =
      resampling == Resampling::linear
          ? at::upsample_bilinear2d(grid, {to.height, to.width}, /*align_corners=*/true)
          : at::_upsample_bicubic2d_aa(grid, {to.height, to.width}, /*align_corners=*/false);
  const at::Tensor resized =
      interpolated.permute({0, 2, 3, 1}).reshape({1, to.height * to.width, width}).to(embedding.scalar_type());
  return at::cat({embedding.narrow(1, 0, prefix), resized}, 1);
}

}  // namespace sparsight
