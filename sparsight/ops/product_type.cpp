#include "sparsight/ops/product_type.h"

#include <ATen/autocast_mode.h>

#include "sparsight/kernels/kernels.h"

namespace sparsight {
namespace {

constexpr int kNotForced = -1;
thread_local int forced_product_type = kNotForced;

bool autocasts_to_bf16() {
  return at::autocast::is_autocast_enabled(at::kCPU) && at::autocast::get_autocast_dtype(at::kCPU) == at::kBFloat16 &&
         !c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::AutocastCPU);
}

}  // namespace

ProductType product_type() {
  if (forced_product_type != kNotForced) return static_cast<ProductType>(forced_product_type);
  return autocasts_to_bf16() && cpu::kernels().multiplies_bf16 ? ProductType::bf16 : ProductType::fp32;
}

ProductScope::ProductScope(ProductType type) : before_(forced_product_type) {
  forced_product_type = static_cast<int>(type);
}

ProductScope::~ProductScope() { forced_product_type = before_; }

}  // namespace sparsight
