// What kernels and their callers both name. No torch: kernels are compiled with the instructions of their level, and
// must not instantiate anything that other files could share.
#pragma once

namespace sparsight {

enum class Activation { gelu, relu, silu, gelu_tanh };

// How a number of a weight is stored.
enum class WeightType { fp32, bf16, int8 };

}  // namespace sparsight
