#include "sparsight/moe/dispatch/expert_parallel.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/moe/dispatch/by_rank.h"
#include "sparsight/moe/dispatch/soft.h"
#include "sparsight/ops/no_second_derivative.h"

namespace sparsight {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What every rank has for the experts of every other: counts[r][e], for the experts e of this rank.
struct Exchange {
  std::vector<int64_t> sent, received;  // rows to and from each rank
  at::Tensor by_expert;                 // [rows] of the received ones: their order by expert, then by rank
  at::Tensor by_rank;                   // its inverse
  at::Tensor offsets;                   // [E / R + 1] of the rows by expert
  at::Tensor arriving;                  // [R, E / R] of each rank and expert
};

Exchange make_exchange(dist::Group& group, const at::Tensor& offsets) {
  const int64_t ranks = group.size(), experts = offsets.size(0) - 1, own = experts / ranks;
  const at::Tensor counts = offsets.diff().to(at::kCPU, at::kLong).contiguous();  // [E]
  const std::vector<int64_t> each(static_cast<size_t>(ranks), 1);
  const at::Tensor arriving = group.all_to_all(counts.view({ranks, own}), each, each);  // [R, E / R]
  Exchange exchange;
  const auto sums = [&](const at::Tensor& by_rank) {
    const at::Tensor sum = by_rank.sum(1).contiguous();
    return std::vector<int64_t>(sum.const_data_ptr<int64_t>(), sum.const_data_ptr<int64_t>() + ranks);
  };
  exchange.sent = sums(counts.view({ranks, own})), exchange.received = sums(arriving);
  // Rows arrive by rank and then by expert; experts take them by expert and then by rank.
  const at::Tensor block = at::arange(own, at::kLong).unsqueeze(0) * ranks + at::arange(ranks, at::kLong).unsqueeze(1);
  const at::Tensor block_of_row = block.reshape({-1}).repeat_interleave(arriving.reshape({-1}));
  exchange.by_expert = block_of_row.argsort(/*stable=*/true, /*dim=*/0);
  exchange.by_rank = exchange.by_expert.argsort();
  exchange.offsets = at::constant_pad_nd(arriving.sum(0).cumsum(0), {1, 0});
  exchange.arriving = arriving;
  return exchange;
}

// Rows to other ranks, and their gradients back.
class Travel : public torch::autograd::Function<Travel> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows, dist::Group* group,
                            const std::vector<int64_t>& sent, const std::vector<int64_t>& received) {
    context->saved_data["group"] = reinterpret_cast<int64_t>(group);
    context->saved_data["sent"] = sent;
    context->saved_data["received"] = received;
    return group->all_to_all(rows, sent, received);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    no_second_derivative();
    auto& saved = context->saved_data;
    auto* const group = reinterpret_cast<dist::Group*>(saved["group"].toInt());
    return {group->all_to_all(grads[0], saved["received"].toIntVector(), saved["sent"].toIntVector()), {}, {}, {}};
  }
};

// The experts of all ranks, of which this one has some.
class SpreadExperts final : public Experts {
 public:
  SpreadExperts(Experts& own, dist::Group& group) : own_(own), group_(group) {}

  bool is_stochastic(const ForwardMode& mode) const override { return own_.is_stochastic(mode); }

 protected:
  at::Tensor compute(const at::Tensor& rows, const at::Tensor& offsets, const RowContext& context) override {
    if ((offsets.size(0) - 1) % group_.size() != 0)
      fail(offsets.size(0) - 1, " experts cannot be spread equally over ", group_.size(),
           " ranks; choose a multiple of it as moe.experts");
    const Exchange exchange = make_exchange(group_, offsets);
    RowContext arrived = context;
    if (context.number.defined())  // a row keeps its random samples
      arrived.number = group_.all_to_all(context.number, exchange.sent, exchange.received);
    const at::Tensor in = Travel::apply(rows, &group_, exchange.sent, exchange.received);
    if (auto* const exact = dynamic_cast<dist::ExactParts*>(&group_); exact && group_.size() > 1)
      return Travel::apply(compute_by_rank(own_, *exact, in, exchange.arriving, arrived), &group_, exchange.received,
                           exchange.sent);
    if (arrived.number.defined()) arrived.number = arrived.number.index_select(0, exchange.by_expert);
    const at::Tensor out = own_.forward(in.index_select(0, exchange.by_expert), exchange.offsets, arrived);
    return Travel::apply(out.index_select(0, exchange.by_rank), &group_, exchange.received, exchange.sent);
  }

 private:
  Experts& own_;
  dist::Group& group_;
};

class ExpertParallelDispatcher final : public Dispatcher {
 public:
  explicit ExpertParallelDispatcher(dist::GroupPtr group) : group_(std::move(group)) {}

  at::Tensor run(const at::Tensor& tokens, const Routing& routing, Experts& experts,
                 const ExpertContext& context) override {
    SpreadExperts spread(experts, *group_);
    return routing.soft ? run_soft_experts(tokens, *routing.soft, spread, context)
                        : spread.apply_routing(tokens, routing, context);
  }

 private:
  dist::GroupPtr group_;
};

}  // namespace

std::shared_ptr<Dispatcher> expert_parallel_dispatcher(dist::GroupPtr group) {
  return std::make_shared<ExpertParallelDispatcher>(std::move(group));
}

void check_can_spread(const Experts& experts, const std::string& layer) {
  const auto refuse = [&](const std::string& name) {
    fail_usage("dist.expert_parallel: the tensor ", name, " of the experts of ", layer,
               " is no parameter with one slice per expert, so the experts cannot be spread over processes; use "
               "dist.expert_parallel = 1, or other experts, such as mlp or swiglu");
  };
  const auto buffers = experts.named_buffers();
  if (!buffers.is_empty()) refuse(buffers.begin()->key());
  const auto parameters = experts.named_parameters();
  for (const auto& item : parameters)
    if (item.key().find('.') != std::string::npos || item.value().dim() == 0 ||
        item.value().size(0) != parameters.begin()->value().size(0))
      refuse(item.key());
}

}  // namespace sparsight
