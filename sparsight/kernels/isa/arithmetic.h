// Whether kernels in fp32 give the same bits at every level that has fused multiply-add: the environment variable
// SPARSIGHT_ARITHMETIC (read once), "fast" by default, or "consistent". Products are one chain of fused multiply-adds
// over the depth, sums of rows follow the order of 16 lanes, and quotients are those of IEEE 754. Included by the
// source files of levels, so it includes nothing.
#pragma once

namespace sparsight {

bool consistent_arithmetic();

}  // namespace sparsight
