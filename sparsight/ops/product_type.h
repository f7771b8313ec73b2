// In which type the kernels of ops/ multiply matrices in fp32. bf16: both operands are rounded to bf16 on the way into
// the product, sums and everything else stay fp32, as do all tensors.
#pragma once

namespace sparsight {

enum class ProductType { fp32, bf16 };

// The calling thread's type: that of the innermost ProductScope, else bf16 under torch's autocast of CPUs to bf16 if
// the level in use multiplies bf16 (kernels/isa/isa.h), else fp32.
ProductType product_type();
inline bool multiplies_bf16() { return product_type() == ProductType::bf16; }

// Forces the type while it lives: the backward pass multiplies as the forward pass did, but runs outside autocast.
class ProductScope {
 public:
  explicit ProductScope(ProductType type);
  ~ProductScope();
  ProductScope(const ProductScope&) = delete;
  ProductScope& operator=(const ProductScope&) = delete;

 private:
  int before_;
};

}  // namespace sparsight
