#include "sparsight/dist/gradient_sum.h"

#include <algorithm>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include "sparsight/core/error.h"

namespace sparsight::dist {

GradientSum::GradientSum(GroupPtr group, std::vector<at::Tensor> parameters)
    : group_(std::move(group)), parameters_(std::move(parameters)), offset_{0} {
  for (const at::Tensor& parameter : parameters_) {
    SPARSIGHT_CHECK(parameter.scalar_type() == parameters_.front().scalar_type());
    offset_.push_back(offset_.back() + parameter.numel());
  }
  part_ = (offset_.back() + group_->size() - 1) / group_->size();
  seen_.resize(parameters_.size());
}

GradientSum::Exchanged GradientSum::exchange(const std::vector<at::Tensor>& gradients) const {
  const int64_t ranks = group_->size();
  const at::Tensor all = at::zeros({ranks * part_}, parameters_.front().options().requires_grad(false));
  const at::Tensor has_gradient = at::zeros({static_cast<int64_t>(parameters_.size())}, at::kByte);
  for (size_t p = 0; p < parameters_.size(); ++p) {
    if (!gradients[p].defined()) continue;
    all.narrow(0, offset_[p], parameters_[p].numel()).view(parameters_[p].sizes()).copy_(gradients[p]);
    has_gradient[static_cast<int64_t>(p)] = 1;
  }
  const std::vector<int64_t> counts(static_cast<size_t>(ranks), part_);
  return {group_->all_to_all(all, counts, counts).view({ranks, part_}), group_->all_gather(has_gradient).contiguous()};
}

void GradientSum::sum_up(const Exchanged& exchanged, int64_t rank) {
  if (!sum_.defined()) sum_ = at::zeros({part_}, exchanged.parts.options());
  const int64_t first = group_->rank() * part_, end = first + part_;
  const auto* const flags = exchanged.present.const_data_ptr<uint8_t>() + rank * exchanged.present.size(1);
  for (size_t p = 0; p < parameters_.size(); ++p) {
    if (!flags[p]) continue;
    const int64_t from = std::max(first, offset_[p]), count = std::min(end, offset_[p + 1]) - from;
    if (count > 0) {
      const at::Tensor to = sum_.narrow(0, from - first, count),
                       more = exchanged.parts[rank].narrow(0, from - first, count);
      seen_[p] ? to.add_(more) : to.copy_(more);
    }
    seen_[p] = true;
  }
}

void GradientSum::add() {
  if (group_->size() == 1 || parameters_.empty()) return;
  std::vector<at::Tensor> own;
  for (at::Tensor& parameter : parameters_) own.push_back(std::exchange(parameter.mutable_grad(), at::Tensor()));
  add({std::move(own)});
}

void GradientSum::add(const std::vector<std::vector<at::Tensor>>& gradients) {
  if (parameters_.empty()) return;
  const at::NoGradGuard no_grad;
  if (group_->size() == 1) {
    for (const std::vector<at::Tensor>& of_minibatch : gradients)
      for (size_t p = 0; p < parameters_.size(); ++p) {
        at::Tensor& sum = parameters_[p].mutable_grad();
        if (of_minibatch[p].defined()) sum = sum.defined() ? sum + of_minibatch[p] : of_minibatch[p];
      }
    return;
  }
  std::vector<Exchanged> exchanged;
  for (const std::vector<at::Tensor>& of_minibatch : gradients) exchanged.push_back(exchange(of_minibatch));
  for (int64_t r = 0; r < group_->size(); ++r)
    for (const Exchanged& of_minibatch : exchanged) sum_up(of_minibatch, r);
}

void GradientSum::finish() {
  if (group_->size() == 1 || parameters_.empty()) return;
  const at::NoGradGuard no_grad;
  if (sum_.defined()) {
    const at::Tensor all = group_->all_gather(sum_).reshape({-1});
    for (size_t p = 0; p < parameters_.size(); ++p)
      if (seen_[p])
        parameters_[p].mutable_grad() =
            at::empty_like(parameters_[p])
                .copy_(all.narrow(0, offset_[p], parameters_[p].numel()).view(parameters_[p].sizes()));
  }
  sum_.reset();
  std::fill(seen_.begin(), seen_.end(), false);
}

}  // namespace sparsight::dist
