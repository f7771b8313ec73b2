#include <cmath>

#include "sparsight/data/transforms/augmentations.h"
#include "sparsight/data/transforms/pixel_ops.h"

namespace sparsight {
namespace {

double image_width(const at::Tensor& image) { return static_cast<double>(image.size(2)); }
double image_height(const at::Tensor& image) { return static_cast<double>(image.size(1)); }

constexpr double kLargestShear = 0.3;          // tangent
constexpr double kLargestShift = 150.0 / 331;  // of the side
constexpr double kLargestTurn = 0.5235987756;  // 30 degrees
constexpr double kLargestEnhancement = 0.9;    // of a factor from 1

}  // namespace

const std::vector<Augmentation>& torchvision_augmentations() {
  static const std::vector<Augmentation> augmentations{
      {"identity", [](const at::Tensor& image, double, const BorderFill&) { return image; }},
      {"shear_x",
       [](const at::Tensor& image, double s, const BorderFill& fill) {
         return warp(image, {1, kLargestShear * s, 0, 0, 1, 0}, fill);
       }},
      {"shear_y",
       [](const at::Tensor& image, double s, const BorderFill& fill) {
         return warp(image, {1, 0, 0, kLargestShear * s, 1, 0}, fill);
       }},
      {"translate_x",
       [](const at::Tensor& image, double s, const BorderFill& fill) {
         return warp(image, {1, 0, std::trunc(kLargestShift * s * image_width(image)), 0, 1, 0}, fill);
       }},
      {"translate_y",
       [](const at::Tensor& image, double s, const BorderFill& fill) {
         return warp(image, {1, 0, 0, 0, 1, std::trunc(kLargestShift * s * image_height(image))}, fill);
       }},
      {"rotate",
       [](const at::Tensor& image, double s, const BorderFill& fill) {
         const double cosine = std::cos(kLargestTurn * s), sine = std::sin(kLargestTurn * s);
         return warp(image, {cosine, -sine, 0, sine, cosine, 0}, fill);
       }},
      {"brightness", [](const at::Tensor& image, double s,
                        const BorderFill&) { return adjust_brightness(image, 1 + kLargestEnhancement * s); }},
      {"color", [](const at::Tensor& image, double s,
                   const BorderFill&) { return adjust_saturation(image, 1 + kLargestEnhancement * s); }},
      {"contrast", [](const at::Tensor& image, double s,
                      const BorderFill&) { return adjust_contrast(image, 1 + kLargestEnhancement * s); }},
      {"sharpness", [](const at::Tensor& image, double s,
                       const BorderFill&) { return adjust_sharpness(image, 1 + kLargestEnhancement * s); }},
      {"posterize",
       [](const at::Tensor& image, double s, const BorderFill&) {
         return posterize(image, 8 - static_cast<int>(std::lround(4 * std::fabs(s))));
       }},
      {"solarize",
       [](const at::Tensor& image, double s, const BorderFill&) {
         return solarize(image, static_cast<int>(std::ceil(255 * (1 - std::fabs(s)))));
       }},
      {"autocontrast", [](const at::Tensor& image, double, const BorderFill&) { return autocontrast(image); }},
      {"equalize", [](const at::Tensor& image, double, const BorderFill&) { return equalize(image); }},
  };
  return augmentations;
}

}  // namespace sparsight
