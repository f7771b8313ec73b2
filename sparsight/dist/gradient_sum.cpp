#include "sparsight/dist/gradient_sum.h"

#include <algorithm>

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

// [R * part], zeros where there is no gradient.
at::Tensor GradientSum::packed_gradients(at::Tensor& has_gradient) const {
  const at::Tensor all = at::zeros({group_->size() * part_}, parameters_.front().options().requires_grad(false));
  has_gradient = at::zeros({static_cast<int64_t>(parameters_.size())}, at::kByte);
  for (size_t p = 0; p < parameters_.size(); ++p) {
    at::Tensor& grad = parameters_[p].mutable_grad();
    if (!grad.defined()) continue;
    all.narrow(0, offset_[p], parameters_[p].numel()).view(parameters_[p].sizes()).copy_(grad);
    has_gradient[static_cast<int64_t>(p)] = 1;
    grad.reset();
  }
  return all;
}

void GradientSum::add() {
  if (group_->size() == 1 || parameters_.empty()) return;
  const at::NoGradGuard no_grad;
  const std::vector<int64_t> counts(static_cast<size_t>(group_->size()), part_);
  at::Tensor has_gradient;
  const at::Tensor own = packed_gradients(has_gradient);
  const at::Tensor received = group_->all_to_all(own, counts, counts).view({group_->size(), part_});
  const at::Tensor present = group_->all_gather(has_gradient).contiguous();
  if (!sum_.defined()) sum_ = at::zeros({part_}, own.options());
  const int64_t first = group_->rank() * part_, end = first + part_;
  for (int64_t r = 0; r < group_->size(); ++r) {
    const auto* const flags = present.const_data_ptr<uint8_t>() + r * present.size(1);
    for (size_t p = 0; p < parameters_.size(); ++p) {
      if (!flags[p]) continue;
      const int64_t from = std::max(first, offset_[p]), count = std::min(end, offset_[p + 1]) - from;
      if (count > 0) {
        const at::Tensor to = sum_.narrow(0, from - first, count), more = received[r].narrow(0, from - first, count);
        seen_[p] ? to.add_(more) : to.copy_(more);
      }
      seen_[p] = true;
    }
  }
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
