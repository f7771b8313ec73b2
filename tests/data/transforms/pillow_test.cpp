// Comparison with images made by Pillow and torchvision: tests/golden/transforms/make_images.py.
#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/data/transforms/pixel_ops.h"
#include "sparsight/data/transforms/resize.h"
#include "sparsight/kernels/isa/isa.h"
#include "tests/data/transforms/golden_image.h"

namespace sparsight::pillow_test {
namespace {

TEST(AgainstPillow, ResizeIsEqualWithEveryInstructionSet) {
  const at::Tensor input = golden_image("input.ppm"), grey = golden_image("grey.pgm");
  // In 12x90 the passes along x and y do not commute.
  const int64_t sizes[][2] = {{13, 17}, {20, 24}, {64, 72}, {7, 48}, {40, 90}, {12, 90}, {1, 1}};
  for (const std::string& isa : isa_names()) {
    set_isa(isa);
    for (const std::string& filter : resize_filters()) {
      for (const auto& [height, width] : sizes) {
        const std::string name = cat(filter, "_", height, "x", width, ".ppm");
        EXPECT_EQ(largest_difference(resize_image(input, height, width, filter), golden_image(name)), 0)
            << name << " " << isa;
      }
      EXPECT_EQ(largest_difference(resize_image(grey, 13, 17, filter), golden_image(filter + "_13x17.pgm")), 0)
          << filter << " " << isa;
    }
  }
  set_isa("");
}

TEST(AgainstPillow, ResizeOfACropIsThatOfItsPixels) {  // a crop is a view with strides
  const at::Tensor input = golden_image("input.ppm"), crop = input.narrow(1, 3, 20).narrow(2, 5, 31);
  EXPECT_EQ(largest_difference(resize_image(crop, 9, 9, "bilinear"), resize_image(crop.clone(), 9, 9, "bilinear")), 0);
}

TEST(AgainstPillow, EnhancementIsEqual) {
  const at::Tensor input = golden_image("input.ppm");
  const std::pair<const char*, at::Tensor (*)(const at::Tensor&, double)> operations[] = {
      {"brightness", adjust_brightness},
      {"contrast", adjust_contrast},
      {"saturation", adjust_saturation},
      {"sharpness", adjust_sharpness}};
  for (const auto& [name, apply] : operations)
    for (const double factor : {0.3, 1.7})
      EXPECT_EQ(largest_difference(apply(input, factor), golden_image(cat(name, "_", factor, ".ppm"))), 0)
          << name << " " << factor;
}

TEST(AgainstPillow, HueIsEqual) {
  const at::Tensor input = golden_image("input.ppm");
  for (const double shift : {-0.3, -0.1, 0.2, 0.5})
    EXPECT_EQ(largest_difference(adjust_hue(input, shift), golden_image(cat("hue_", shift, ".ppm"))), 0) << shift;
}

TEST(AgainstPillow, LevelOperationsAreEqual) {
  const at::Tensor input = golden_image("input.ppm"), dull = golden_image("dull.ppm");
  EXPECT_EQ(largest_difference(grayscale(input)[0].unsqueeze(0), golden_image("grey.pgm")), 0);
  EXPECT_EQ(largest_difference(autocontrast(dull), golden_image("autocontrast.ppm")), 0);
  EXPECT_EQ(largest_difference(equalize(dull), golden_image("equalize.ppm")), 0);
  EXPECT_EQ(largest_difference(posterize(input, 3), golden_image("posterize.ppm")), 0);
  EXPECT_EQ(largest_difference(solarize(input, 100), golden_image("solarize.ppm")), 0);
}

}  // namespace
}  // namespace sparsight::pillow_test
