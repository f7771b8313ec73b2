// Colour and tone operations on byte images, equal to Pillow's ImageEnhance and ImageOps. All take and return
// [C,H,W] uint8 with C = 1 or 3 and do not modify their argument.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

// The same image with contiguous planes. `op` names the caller in errors: raises UsageError for an image that is no
// longer bytes (after normalize) or has neither 1 nor 3 channels.
at::Tensor byte_planes(const at::Tensor& image, const char* op);

// Luma (19595 R + 38470 G + 7471 B) / 2^16 in every channel.
at::Tensor grayscale(const at::Tensor& image);

// Extrapolate from (factor > 1) or interpolate towards (factor < 1) black, the mean grey, grey, or a smoothed image.
at::Tensor adjust_brightness(const at::Tensor& image, double factor);
at::Tensor adjust_contrast(const at::Tensor& image, double factor);
at::Tensor adjust_saturation(const at::Tensor& image, double factor);
at::Tensor adjust_sharpness(const at::Tensor& image, double factor);

// Turns the hue by `shift`, -1 to 1 of a circle, in 255 whole steps, as torchvision does with Pillow's images: hue,
// saturation and value are bytes between.
at::Tensor adjust_hue(const at::Tensor& image, double shift);

// Keeps the `bits` highest bits.
at::Tensor posterize(const at::Tensor& image, int bits);
// Inverts the levels from `threshold` on.
at::Tensor solarize(const at::Tensor& image, int threshold);
// Adds `amount` to the levels below `threshold`, up to 255.
at::Tensor solarize_add(const at::Tensor& image, int amount, int threshold);
// Stretches each channel to 0..255.
at::Tensor autocontrast(const at::Tensor& image);
// Equalises each channel's histogram.
at::Tensor equalize(const at::Tensor& image);

}  // namespace sparsight
