// How fast the kernels of ops/ and oneDNN are on this machine.
#pragma once

#include "sparsight/core/engines.h"

namespace sparsight {

// What the layers of models reach: a transformer block of width 384 on 4 images of 50 tokens, with its backward pass in
// training and packed in inference, and a residual block of two 3x3 convolutions of 64 channels on 8 maps of 16 x 16.
// One thread, on its processor time so that other processes matter little; the best of some runs in turns, which take
// about half a second. oneDNN: 0 where this build of torch lacks it.
EngineRates measure_engine_rates();

}  // namespace sparsight
