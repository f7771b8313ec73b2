// Channels whose activations are much larger than those of others make int8 coarse for the others, since a row of
// activations shares one scale. Xiao et al. 2023, "SmoothQuant", section 4: the norm before a linear layer divides each
// channel by a factor, and the layer's weights multiply by it, which leaves the function as it is.
#pragma once

#include <vector>

#include "sparsight/models/image_model.h"

namespace sparsight {

// Equation 4: factor_j = activation_j^strength / weight_j^(1-strength), where both are the largest magnitudes of
// channel j, [D]; 1 where one of them is 0, or the factor is no positive number of fp32.
at::Tensor smoothing_factors(const at::Tensor& activations, const at::Tensor& weights, double strength);

// Changes the weights of all norms and linear layers that HasNormedLinears tells. images: batches [B,C,H,W], pixels in
// 0..1, on which activations are measured. strength: 0 to 1; 0.5 shares outliers evenly. Returns the number of layers.
// Raises Error for a model without such layers, and for activations that are not finite.
int64_t smooth_channels(ImageModel& model, const std::vector<at::Tensor>& images, double strength);

}  // namespace sparsight
