#include "sparsight/papers/pmoe/two_layer/router_sgd.h"

#include <algorithm>
#include <span>

#include <torch/types.h>

#include "sparsight/core/shuffle.h"

namespace sparsight::pmoe {

at::Tensor shuffled(at::Tensor ids, const RandomStream& stream) {
  RandomStream random = stream;
  shuffle(std::span(ids.mutable_data_ptr<int64_t>(), static_cast<size_t>(ids.size(0))), random);
  return ids;
}

void train_router_pair(const at::Tensor& first, const at::Tensor& second, const at::Tensor& signed_sums,
                       const RouterSgd& sgd) {
  const at::NoGradGuard no_grad;
  const int64_t samples = signed_sums.size(0);
  if (samples == 0) return;
  at::Tensor order;
  for (int64_t step = 0, next = samples, epoch = 0; step < sgd.steps; ++step) {
    if (next >= samples) {
      order = shuffled(at::arange(samples, at::kLong), sgd.order(epoch++));
      next = 0;
    }
    const int64_t count = std::min(sgd.batch, samples - next);
    const at::Tensor mean = signed_sums.index_select(0, order.narrow(0, next, count)).mean(0);
    if (first.defined()) first.add_(mean, sgd.lr);
    if (second.defined()) second.sub_(mean, sgd.lr);
    next += count;
  }
}

}  // namespace sparsight::pmoe
