// Bytes to pixels (engine/preprocess.h), worked by hand.
#include "sparsight/engine/preprocess.h"

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "tests/support/errors.h"

namespace sparsight::engine {
namespace {

using Kind = PreprocessStep::Kind;

// Rows 0, 1, 2 ...; each byte is 10 y + x.
ByteImage numbered(int64_t height, int64_t width) {
  ByteImage image(1, height, width);
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      image.bytes[static_cast<size_t>(y * width + x)] = static_cast<uint8_t>(10 * y + x);
  return image;
}

std::vector<float> processed_pixels(const Preprocessing& preprocessing, const ByteImage& image,
                                    bool fell_back = false) {
  std::vector<float> pixels(static_cast<size_t>(preprocessing.channels * preprocessing.height * preprocessing.width));
  EXPECT_EQ(preprocessing.run(image.view(), pixels.data()), fell_back);
  return pixels;
}

TEST(Preprocess, CropsTheSquareInTheMiddle) {
  const Preprocessing crop{{{Kind::center_crop, 2, 2}}, true, 1, 2, 2};
  EXPECT_EQ(processed_pixels(crop, numbered(4, 5)),
            (std::vector<float>{11.F / 255, 12.F / 255, 21.F / 255, 22.F / 255}));
}

// Two bytes become one: their mean, (1 x 0.5 + 3 x 0.5); by the shorter side, 4 x 2 becomes 2 x 1.
TEST(Preprocess, ResizesByTheShorterSide) {
  ByteImage image(1, 4, 2);
  image.bytes = {1, 1, 1, 1, 9, 9, 9, 9};
  const Preprocessing half{{{Kind::resize, 1, 0}}, false, 1, 2, 1};
  const std::vector<float> pixels = processed_pixels(half, image);
  EXPECT_NEAR(pixels[0] * 255, 2, 1.01);  // the triangle reaches a quarter into the other half
  EXPECT_NEAR(pixels[1] * 255, 8, 1.01);
}

TEST(Preprocess, FitsImagesOfAnotherSize) {
  const Preprocessing none{{}, true, 1, 2, 2};
  EXPECT_EQ(processed_pixels(none, numbered(2, 2)), (std::vector<float>{0, 1.F / 255, 10.F / 255, 11.F / 255}));
  EXPECT_EQ(processed_pixels(none, numbered(2, 4), /*fell_back=*/true),
            (std::vector<float>{1.F / 255, 2.F / 255, 11.F / 255, 12.F / 255}));
}

TEST(Preprocess, RefusesWhatDoesNotFit) {
  const auto refused = [](const Preprocessing& preprocessing, const ByteImage& image) {
    std::vector<float> pixels(64);
    return sparsight::testing::error_text([&] { preprocessing.run(image.view(), pixels.data()); });
  };
  EXPECT_NE(refused({{}, true, 3, 2, 2}, numbered(2, 2))
                .find("and 1 channels is not transformed to the 2x2 pixels and 3 channels"),
            std::string::npos);
  EXPECT_NE(refused({{{Kind::center_crop, 3, 3}}, true, 1, 2, 2}, numbered(2, 2)).find("at least 3x3"),
            std::string::npos);
  EXPECT_NE(refused({{{Kind::resize, 3, 3}}, true, 1, 2, 2}, numbered(2, 2))
                .find("of 2x2 pixels and 1 channels is not transformed to the 2x2"),
            std::string::npos);
  ByteImage wide(1, 1, 2'000'000);
  EXPECT_NE(refused({{{Kind::resize, 4, 0}}, true, 1, 4, 4}, wide).find("100 million"), std::string::npos);
}

}  // namespace
}  // namespace sparsight::engine
