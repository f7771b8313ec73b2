#include "sparsight/moe/dispatch/soft.h"

#include "sparsight/core/error.h"

namespace sparsight {

at::Tensor run_soft_experts(const at::Tensor& tokens, const SoftRouting& routing, Experts& experts,
                            const ExpertContext& context) {
  const int64_t images = routing.layout.images, slots = routing.slots, width = tokens.size(1);
  SPARSIGHT_CHECK(tokens.size(0) == images * routing.layout.per_image);
  // Padding has weight 0, but NaN times 0 is NaN, whether the NaN is in padding or in a slot of the image.
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
  RowContext of_rows{context.mode, context.random, context.path, {}};
  if (experts.is_stochastic(context.mode)) {
    const at::Tensor image = context.image.defined() ? context.image : at::arange(images, torch::kLong),
                     slot = at::arange(routing.experts * slots, torch::kLong).view({routing.experts, 1, slots});
    of_rows.number = (image.unsqueeze(1) * (routing.experts * slots) + slot).reshape({-1});  // [E,B,slots]
  }
  const at::Tensor out = experts.forward(rows, offsets.to(rows.device()), of_rows);
  const at::Tensor by_slot = out.view({routing.experts, images, slots, out.size(1)})
                                 .transpose(0, 1)
                                 .reshape({images, routing.experts * slots, out.size(1)});
  return cleared(at::bmm(routing.combine.to(out.scalar_type()), by_slot)).reshape({tokens.size(0), out.size(1)});
}

}  // namespace sparsight
