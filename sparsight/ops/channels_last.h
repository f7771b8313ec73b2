// The layout of feature maps in memory on the kernels: [B,C,H,W] with the channels of a position side by side.
#pragma once

#include <c10/core/MemoryFormat.h>

namespace sparsight {

inline constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

}  // namespace sparsight
