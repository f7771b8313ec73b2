#include "sparsight/nn/mlp.h"

namespace sparsight {

MlpImpl::MlpImpl(const MlpOptions& options)
    : fc1_(register_module("fc1", Linear(options.width, options.hidden))),
      fc2_(register_module("fc2", Linear(options.hidden, options.width))),
      activation_(options.activation) {}

at::Tensor MlpImpl::forward(const at::Tensor& x) { return fc2_->forward(activate(fc1_->forward(x), activation_)); }

Cost MlpImpl::cost() const {
  return fc1_->cost() + elementwise_cost(activation_operations(activation_) * fc1_->weight.size(0)) + fc2_->cost();
}

}  // namespace sparsight
