#include "sparsight/moe/experts/block_experts.h"

#include <torch/types.h>

#include "sparsight/core/error.h"
#include "sparsight/engine/conv_experts.h"

namespace sparsight {
namespace {

// 0, with gradients of 0 for all parameters: a sum over none of their elements, so that NaN stays where it is.
at::Tensor zero_with_gradients(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> empty;
  for (const at::Tensor& p : parameters) empty.push_back(p.flatten().narrow(0, 0, 0));
  return at::cat(empty).sum();
}

}  // namespace

BlockExperts::BlockExperts(int64_t experts, const MapShape& in, const MapShape& out,
                           const std::function<std::shared_ptr<ConvBlock>()>& make)
    : in_(in), out_(out) {
  for (int64_t e = 0; e < experts; ++e) blocks_.push_back(register_module(std::to_string(e), make()));
}

at::Tensor BlockExperts::compute(const at::Tensor& rows, const at::Tensor& offsets, const RowContext& context) {
  const at::Tensor groups = offsets.to(torch::kCPU, torch::kLong).contiguous();
  const int64_t* const first = groups.const_data_ptr<int64_t>();
  std::vector<at::Tensor> outputs, idle;
  for (size_t e = 0; e < blocks_.size(); ++e) {
    const int64_t count = first[e + 1] - first[e];
    if (count == 0) {
      for (const at::Tensor& p : blocks_[e]->parameters())
        if (p.requires_grad()) idle.push_back(p);
      continue;
    }
    const at::Tensor maps =
        rows.narrow(0, first[e], count).view({count, in_.channels, in_.size.height, in_.size.width});
    const bool has_variance = count * out_.size.positions() > 1;
    outputs.push_back(
        blocks_[e]->forward(maps, context.mode.batch_statistics && has_variance).flatten(1).to(rows.scalar_type()));
  }
  at::Tensor y = outputs.empty() ? at::zeros({0, out_.numbers()}, rows.options()) : at::cat(outputs);
  if (at::GradMode::is_enabled() && !idle.empty()) y = y + zero_with_gradients(idle).to(y.scalar_type());
  return y;
}

std::unique_ptr<engine::Experts> BlockExperts::compile(const engine::WeightForm& form) const {
  std::vector<engine::ConvChain> blocks;
  for (const auto& block : blocks_) blocks.emplace_back(block->conv_steps(form.type));
  return std::make_unique<engine::BlockExperts>(std::move(blocks),
                                                engine::ConvChain::Map{in_.size.height, in_.size.width, in_.channels});
}

ExpertTensors BlockExperts::expert_tensors() const {
  return {.merge_refusal = "blocks with batch norms have no mean block", .modules = true};
}

Cost BlockExperts::cost(const ExpertUse& use) const {
  MapSize map = in_.size;
  return experts_cost(total(blocks_.front()->cost("", map)), use);
}

}  // namespace sparsight
