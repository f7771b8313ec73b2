#include "sparsight/train/minibatches.h"

#include <memory>

#include "sparsight/core/error.h"

namespace sparsight {

Minibatches::Minibatches(std::vector<Batch> batches) : left_(static_cast<int64_t>(batches.size())) {
  const auto list = std::make_shared<std::vector<Batch>>(std::move(batches));
  read_ = [list, next = size_t{0}]() mutable { return std::move((*list)[next++]); };
}

Batch Minibatches::next() {
  SPARSIGHT_CHECK(left_ > 0);
  --left_;
  return read_();
}

std::vector<Batch> Minibatches::all() {
  std::vector<Batch> batches;
  while (left_ > 0) batches.push_back(next());
  return batches;
}

}  // namespace sparsight
