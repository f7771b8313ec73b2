// The l1 ball around an image within the box of valid pixels (Croce and Hein 2021, "Mind the box: l1-APGD for sparse
// adversarial attacks on image classifiers"): the projection onto their intersection, and sparse steps. Unlike for the
// other norms the box is in the way almost always: a few pixels of an image take the whole perturbation.
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/attacks/threat_model.h"

namespace sparsight {

// The closest point to `v` with ||. - x||_1 <= epsilon and pixels in `range`, of each image; exact, by sorting (section
// 2.1). v, x: [B,...], x in `range`, whose bounds may be infinite. In fp32 the point is rounded towards x.
at::Tensor project_l1(const at::Tensor& v, const at::Tensor& x, double epsilon, const PixelRange& range);

// The gradient at `v`, 0 where the pixels of v and of the image x are at the edge of `range` and a step would leave it:
// these can never move. A pixel that came to the edge from inside keeps its gradient, since a step that leaves it out
// shortens its change in the projection. All [B,...].
at::Tensor movable_gradient(const at::Tensor& gradient, const at::Tensor& v, const at::Tensor& x,
                            const PixelRange& range);

// Steepest ascent of l1 norm 1 with at least `count` [B] int64 entries of each image, those of the largest |g|, ties
// included: sign(g) / n at these n entries, 0 elsewhere and where g is 0. gradient: [B,...]; count: 1 or more.
at::Tensor sparse_ascent(const at::Tensor& gradient, const at::Tensor& count);

}  // namespace sparsight
