// Changes of colour and tone on byte images, equal to Pillow's ImageEnhance and ImageOps. All take and return
// [C,H,W] uint8 with C = 1 or 3 and leave their argument as it is.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

// The same image with its planes one after another in memory. `op` names the caller in errors: raises UsageError for an
// image that is no longer bytes (after normalize) or has neither 1 nor 3 channels.
at::Tensor byte_planes(const at::Tensor& image, const char* op);

// Luma (19595 R + 38470 G + 7471 B) / 2^16 in every channel.
at::Tensor grayscale(const at::Tensor& image);

// Moves away from (factor > 1) or towards (factor < 1) black, the mean grey, grey, or a smoothed image.
at::Tensor adjust_brightness(const at::Tensor& image, double factor);
at::Tensor adjust_contrast(const at::Tensor& image, double factor);
at::Tensor adjust_saturation(const at::Tensor& image, double factor);
at::Tensor adjust_sharpness(const at::Tensor& image, double factor);

// Turns the hue by `shift` of a full circle. Not Pillow's: computed without rounding to 8-bit HSV.
at::Tensor adjust_hue(const at::Tensor& image, double shift);

// Keeps the `bits` highest bits.
at::Tensor posterize(const at::Tensor& image, int bits);
// Inverts the levels from `threshold` on.
at::Tensor solarize(const at::Tensor& image, int threshold);
// Stretches each channel to 0..255.
at::Tensor autocontrast(const at::Tensor& image);
// Makes each channel's histogram as flat as a change of levels can.
at::Tensor equalize(const at::Tensor& image);

}  // namespace sparsight
