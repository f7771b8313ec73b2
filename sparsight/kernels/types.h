// Types shared by the kernels and their callers. No torch headers: kernels are compiled with the instructions of their
// level, and must not instantiate anything that other files could share.
#pragma once

namespace sparsight {

enum class Activation { gelu, relu, silu, gelu_tanh };

// The type in which weights are stored.
enum class WeightType { fp32, bf16, int8 };

}  // namespace sparsight
