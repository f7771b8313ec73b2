// Numbers of images, [B], applied to tensors of images, [B,...].
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/attacks/threat_model.h"

namespace sparsight {

// values: [B]. Returns them as [B,1,1,...], of the dtype of `like` unless they are bool, to be broadcast over [B,...].
at::Tensor per_image(const at::Tensor& values, const at::Tensor& like);

// delta: [B,...]. Returns [B] fp64: the largest magnitude, the Euclidean norm or the sum of the magnitudes of each
// image. The Euclidean norm neither underflows nor overflows for numbers of fp32.
at::Tensor image_norms(const at::Tensor& delta, Norm norm);

// which: [B] bool. The images of `yes` where it holds, those of `no` elsewhere.
at::Tensor choose_images(const at::Tensor& which, const at::Tensor& yes, const at::Tensor& no);

}  // namespace sparsight
