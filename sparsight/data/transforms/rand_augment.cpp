#include "sparsight/data/transforms/rand_augment.h"

#include <cmath>

#include "sparsight/data/transforms/pixel_ops.h"
#include "sparsight/data/transforms/warp.h"

namespace sparsight {
namespace {

struct Augmentation {
  const char* name;
  // signed_strength: -1..1; operations without direction use its absolute value.
  at::Tensor (*apply)(const at::Tensor& image, double signed_strength, uint8_t fill);
};

double width_of(const at::Tensor& image) { return static_cast<double>(image.size(2)); }
double height_of(const at::Tensor& image) { return static_cast<double>(image.size(1)); }

constexpr double kLargestShear = 0.3;          // tangent
constexpr double kLargestShift = 150.0 / 331;  // of the side
constexpr double kLargestTurn = 0.5235987756;  // 30 degrees
constexpr double kLargestEnhancement = 0.9;    // of a factor from 1

const std::vector<Augmentation>& list() {
  static const std::vector<Augmentation> augmentations{
      {"identity", [](const at::Tensor& image, double, uint8_t) { return image; }},
      {"shear_x",
       [](const at::Tensor& image, double s, uint8_t fill) {
         return warp(image, {1, kLargestShear * s, 0, 0, 1, 0}, fill);
       }},
      {"shear_y",
       [](const at::Tensor& image, double s, uint8_t fill) {
         return warp(image, {1, 0, 0, kLargestShear * s, 1, 0}, fill);
       }},
      {"translate_x",
       [](const at::Tensor& image, double s, uint8_t fill) {
         return warp(image, {1, 0, std::trunc(kLargestShift * s * width_of(image)), 0, 1, 0}, fill);
       }},
      {"translate_y",
       [](const at::Tensor& image, double s, uint8_t fill) {
         return warp(image, {1, 0, 0, 0, 1, std::trunc(kLargestShift * s * height_of(image))}, fill);
       }},
      {"rotate",
       [](const at::Tensor& image, double s, uint8_t fill) {
         const double cosine = std::cos(kLargestTurn * s), sine = std::sin(kLargestTurn * s);
         return warp(image, {cosine, -sine, 0, sine, cosine, 0}, fill);
       }},
      {"brightness", [](const at::Tensor& image, double s,
                        uint8_t) { return adjust_brightness(image, 1 + kLargestEnhancement * s); }},
      {"color", [](const at::Tensor& image, double s,
                   uint8_t) { return adjust_saturation(image, 1 + kLargestEnhancement * s); }},
      {"contrast",
       [](const at::Tensor& image, double s, uint8_t) { return adjust_contrast(image, 1 + kLargestEnhancement * s); }},
      {"sharpness",
       [](const at::Tensor& image, double s, uint8_t) { return adjust_sharpness(image, 1 + kLargestEnhancement * s); }},
      {"posterize", [](const at::Tensor& image, double s,
                       uint8_t) { return posterize(image, 8 - static_cast<int>(std::lround(4 * std::fabs(s)))); }},
      {"solarize", [](const at::Tensor& image, double s,
                      uint8_t) { return solarize(image, static_cast<int>(std::ceil(255 * (1 - std::fabs(s))))); }},
      {"autocontrast", [](const at::Tensor& image, double, uint8_t) { return autocontrast(image); }},
      {"equalize", [](const at::Tensor& image, double, uint8_t) { return equalize(image); }},
  };
  return augmentations;
}

}  // namespace

void RandAugmentOptions::declare(OptionSet& set) {
  set.integer("ops", &ops, {0, 14}, "operations applied to each image, sampled with replacement");
  set.real("magnitude", &magnitude, {0, 30}, "their strength, 30 is the strongest");
  set.integer("fill", &fill, {0, 255}, "value of pixels that come from outside of the image");
}

const std::vector<std::string>& augmentations() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Augmentation& entry : list()) all.emplace_back(entry.name);
    return all;
  }();
  return names;
}

at::Tensor augment(const at::Tensor& image, const std::string& name, double strength, bool mirrored, uint8_t fill) {
  for (const Augmentation& entry : list())
    if (name == entry.name) return entry.apply(image, mirrored ? -strength : strength, fill);
  fail_usage("unknown augmentation \"", name, "\"; known: ", join(augmentations()));
}

TransformOp make_rand_augment(const RandAugmentOptions& options) {
  return [=](const at::Tensor& image, RandomStream& random) {
    at::Tensor result = byte_planes(image, "rand_augment");
    for (int64_t i = 0; i < options.ops; ++i) {
      const Augmentation& chosen = list()[random.below(std::ssize(list()))];
      const double strength = options.magnitude / 30;
      result = chosen.apply(result, random.below(2) ? -strength : strength, static_cast<uint8_t>(options.fill));
    }
    return result;
  };
}

}  // namespace sparsight
