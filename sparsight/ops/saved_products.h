// The product type (product_type.h) of a hand-written operation, from its forward to its backward pass.
#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include "sparsight/ops/product_type.h"

namespace sparsight {

// In the forward pass: the backward pass will multiply as it does.
inline void save_products(torch::autograd::AutogradContext* context) {
  context->saved_data["products"] = static_cast<int64_t>(product_type());
}

// In the backward pass, while it multiplies.
class SavedProducts : public ProductScope {
 public:
  explicit SavedProducts(torch::autograd::AutogradContext* context)
      : ProductScope(static_cast<ProductType>(context->saved_data["products"].toInt())) {}
};

}  // namespace sparsight
