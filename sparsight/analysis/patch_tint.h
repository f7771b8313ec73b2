// Images of routing: each patch is tinted in the colour of its expert. Letters: moe/axes.md.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sparsight/moe/routing.h"

namespace sparsight {

struct PicturePoint {
  double x = 0, y = 0;
};

// The expert of each of an image's S tokens: the kept assignment with the largest gate (the first choice of a
// token-choice router, unless capacity dropped it); -1 for a token without expert.
std::vector<int64_t> first_experts(const Routing& routing, int64_t image);

// The experts to show on each of an image's S tokens: first_experts if tokens choose; if experts choose tokens, all
// that took the token, by descending gate. Empty for a token without expert.
std::vector<std::vector<int64_t>> shown_experts(const Routing& routing, int64_t image);

// Whether the tokens of `routing` can be shown on an image: a grid of patches, or one token for the whole image.
bool can_tint(const Routing& routing);

// image: [3,H,W] uint8, the model's input for image `index`. Returns [3,s H,s W] uint8, enlarged without smoothing by
// an integer factor s so that the shorter side has about `side` pixels: grey levels in the expert's colour, with the
// expert's number if the patch has room for it. A patch with several shown_experts is divided among them from left to
// right. Tokens without expert stay dark grey.
at::Tensor tint_patches(const at::Tensor& image, const Routing& routing, int64_t index, int64_t side = 224);

// The image and its tinted copies, one panel per routing that can be shown, side by side under their layer names, with
// the experts of tokens that are not patches (class token) next to the name and a legend of the experts below. Each of
// `points`, in pixels of the image, gets a circle on every panel. [3,*,*] uint8
at::Tensor routing_panels(const at::Tensor& image, const std::vector<Routing>& routings, int64_t index,
                          int64_t side = 224, const std::vector<PicturePoint>& points = {});

}  // namespace sparsight
