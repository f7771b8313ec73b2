// Dropout and drop path (stochastic depth), from named random streams, for passes whose ForwardMode has them. The
// random samples of an image are keyed by its index alone: splitting a batch or removing images does not change them.
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/core/random.h"
#include "sparsight/ops/dropout_mask.h"

namespace sparsight {

// Zeroes each element with probability `rate` (0 <= rate < 1) and scales the others by 1/(1-rate). x: [B,...]. image:
// [B] int64 indices of the images; undefined: 0 .. B-1.
at::Tensor dropout(const at::Tensor& x, double rate, const RandomStream& stream, const at::Tensor& image = {});
// The same factors for the tokens of a residual branch, or the first Q of each image: [B Q] rows of D columns. Rate 0:
// undefined.
struct TokenRows {
  int64_t images = 0, tokens = 0, first = 0, width = 0;  // B, S, Q, D
  at::Tensor image = {};                                 // [B], as above
};
DropoutMask token_dropout(const TokenRows& rows, double rate, const RandomStream& stream);
// Zeroes whole images: [B Q] factors of rows.
at::Tensor token_drop_path(const TokenRows& rows, double rate, const RandomStream& stream);

}  // namespace sparsight
