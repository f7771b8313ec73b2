// Sums over tokens, without padding, for losses and metrics. Letters: moe/axes.md; G groups.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

// The number of tokens that are not padding.
int64_t valid_token_count(const Routing& routing);

// rows: [N,...]. The same with the rows of padding set to 0, without gradients.
at::Tensor without_padding(const Routing& routing, const at::Tensor& rows);

// rows: [N,E]. Returns [G,E]: the sum of each group.
at::Tensor group_sums(const Routing& routing, const at::Tensor& rows);

// values: [G]. Returns []: the mean over the groups that are not all padding; 0 if there are none.
at::Tensor group_mean(const Routing& routing, const at::Tensor& values);

// The sum of all elements, in an order that does not depend on the number of threads (torch splits long sums by
// thread).
at::Tensor ordered_sum(const at::Tensor& values);

// rows: [N]. Returns []: the mean over tokens; 0 without tokens.
at::Tensor token_mean(const Routing& routing, const at::Tensor& rows);

}  // namespace sparsight
