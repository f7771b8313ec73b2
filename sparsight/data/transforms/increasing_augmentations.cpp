#include <algorithm>
#include <cmath>

#include "sparsight/data/transforms/affine.h"
#include "sparsight/data/transforms/augmentations.h"
#include "sparsight/data/transforms/pixel_ops.h"

namespace sparsight {
namespace {

constexpr double kMaxDegrees = 30;
constexpr double kMaxTangent = 0.3;       // of a shear
constexpr double kMaxMove = 0.45;         // of the side
constexpr double kMaxFactorChange = 0.9;  // of an enhancement, from 1
constexpr double kMaxLostBits = 4;        // after four lost at strength 0
constexpr double kMaxAdded = 110;         // levels

double enhancement(double strength) { return std::max(0.1, 1 + kMaxFactorChange * strength); }

int scaled_floor(double most, double strength) { return static_cast<int>(std::fabs(strength) * most); }

at::Tensor shifted(const at::Tensor& image, double across, double down, const BorderFill& fill) {
  return affine_bicubic(image, {1, 0, across, 0, 1, down}, fill);
}

}  // namespace

const std::vector<Augmentation>& increasing_augmentations() {
  using Image = const at::Tensor&;
  using Fill = const BorderFill&;
  static const std::vector<Augmentation> list{
      {"autocontrast", [](Image image, double, Fill) { return autocontrast(image); }},
      {"equalize", [](Image image, double, Fill) { return equalize(image); }},
      {"invert", [](Image image, double, Fill) { return solarize(image, 0); }},
      {"rotate", [](Image image, double s, Fill fill) { return rotate_bicubic(image, kMaxDegrees * s, fill); }},
      {"posterize", [](Image image, double s, Fill) { return posterize(image, 4 - scaled_floor(kMaxLostBits, s)); }},
      {"solarize", [](Image image, double s, Fill) { return solarize(image, 256 - scaled_floor(256, s)); }},
      {"solarize_add",
       [](Image image, double s, Fill) { return solarize_add(image, scaled_floor(kMaxAdded, s), 128); }},
      {"color", [](Image image, double s, Fill) { return adjust_saturation(image, enhancement(s)); }},
      {"contrast", [](Image image, double s, Fill) { return adjust_contrast(image, enhancement(s)); }},
      {"brightness", [](Image image, double s, Fill) { return adjust_brightness(image, enhancement(s)); }},
      {"sharpness", [](Image image, double s, Fill) { return adjust_sharpness(image, enhancement(s)); }},
      {"shear_x",
       [](Image image, double s, Fill fill) {
         return affine_bicubic(image, {1, kMaxTangent * s, 0, 0, 1, 0}, fill);
       }},
      {"shear_y",
       [](Image image, double s, Fill fill) {
         return affine_bicubic(image, {1, 0, 0, kMaxTangent * s, 1, 0}, fill);
       }},
      {"translate_x",
       [](Image image, double s, Fill fill) {
         return shifted(image, kMaxMove * s * static_cast<double>(image.size(2)), 0, fill);
       }},
      {"translate_y",
       [](Image image, double s, Fill fill) {
         return shifted(image, 0, kMaxMove * s * static_cast<double>(image.size(1)), fill);
       }},
  };
  return list;
}

}  // namespace sparsight
