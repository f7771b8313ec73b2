#include "sparsight/moe/soft_dispatch.h"

#include <algorithm>

#include "sparsight/core/error.h"

namespace sparsight {

at::Tensor run_soft_experts(const at::Tensor& tokens, const SoftRouting& routing, Experts& experts,
                            const std::optional<ExpertRandom>& random) {
  const int64_t images = routing.layout.images, slots = routing.slots, width = tokens.size(1);
  SPARSIGHT_CHECK(tokens.size(0) == images * routing.layout.per_image);
  // Padding has weights of 0, but NaN times 0 is NaN: in padding, or in the slots of its image.
  const auto cleared = [&](const at::Tensor& by_image) {  // [B,S,_]
    return routing.valid.defined() ? by_image.masked_fill(routing.valid.view({images, -1, 1}).logical_not(), 0)
                                   : by_image;
  };
  const at::Tensor by_image = cleared(tokens.view({images, routing.layout.per_image, width}));
  const auto type = tokens.scalar_type();
  const at::Tensor mixed = at::bmm(routing.dispatch.to(type).transpose(1, 2), by_image);  // [B,P,D]
  // Rows grouped by expert: [B,E,slots,D] -> [E,B,slots,D].
  const at::Tensor rows = mixed.view({images, routing.experts, slots, width}).transpose(0, 1).reshape({-1, width});
  const at::Tensor offsets = at::arange(routing.experts + 1, torch::kLong) * (images * slots);
  RowDraws draws;
  if (random && experts.draws()) {
    const int64_t first_image = random->first_token / std::max<int64_t>(1, routing.layout.per_image);
    const at::Tensor image = at::arange(first_image, first_image + images, torch::kLong).unsqueeze(1),
                     slot = at::arange(routing.experts * slots, torch::kLong).view({routing.experts, 1, slots});
    draws = {random->random, random->path, (image * (routing.experts * slots) + slot).reshape({-1})};  // [E,B,slots]
  }
  const at::Tensor out = experts.apply_rows(rows, offsets.to(rows.device()), draws);
  const at::Tensor by_slot = out.view({routing.experts, images, slots, out.size(1)})
                                 .transpose(0, 1)
                                 .reshape({images, routing.experts * slots, out.size(1)});
  return cleared(at::bmm(routing.combine.to(out.scalar_type()), by_slot)).reshape({tokens.size(0), out.size(1)});
}

}  // namespace sparsight
