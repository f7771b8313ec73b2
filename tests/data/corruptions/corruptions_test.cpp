// The corruptions of ImageNet-C against the public package imagecorruptions: tests/golden/corruptions.
#include <cmath>
#include <fstream>
#include <numeric>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/data/corruptions/corruptions.h"
#include "sparsight/data/transforms/corrupt.h"
#include "tests/data/transforms/golden_image.h"
#include "tests/support/errors.h"

namespace sparsight::corruptions::corruptions_test {
namespace {

Picture to_picture(const at::Tensor& bytes) {
  Picture picture(bytes.size(0), bytes.size(1), bytes.size(2));
  const at::Tensor whole = bytes.contiguous();
  for (size_t i = 0; i < picture.values.size(); ++i)
    picture.values[i] = static_cast<float>(whole.const_data_ptr<uint8_t>()[i]) / 255;
  return picture;
}

double level(float value) { return std::floor(static_cast<double>(value) * 255 + 1e-3); }

// The largest and the mean difference from a picture of the package, in levels.
struct Difference {
  double largest = 0, mean = 0;
};
Difference difference(Picture ours, const std::string& name) {
  clip(ours);
  const Picture theirs = to_picture(golden_image("../corruptions/" + name + ".ppm"));
  EXPECT_EQ(ours.values.size(), theirs.values.size()) << name;
  Difference found;
  for (size_t i = 0; i < ours.values.size(); ++i) {
    const double levels = std::abs(level(ours.values[i]) - level(theirs.values[i]));
    found.largest = std::max(found.largest, levels);
    found.mean += levels / static_cast<double>(ours.values.size());
  }
  return found;
}

Picture smooth_picture() {
  constexpr int64_t kSide = 244;
  Picture smooth(3, kSide, kSide);
  for (int64_t c = 0; c < 3; ++c)
    for (int64_t y = 0; y < kSide; ++y)
      for (int64_t x = 0; x < kSide; ++x) {
        const auto at = [](int64_t i) { return static_cast<double>(i); };
        smooth.at(c, y, x) = static_cast<float>(
            std::floor(128 + 100 * std::sin(at(x) / 9 + at(c)) * std::cos(at(y) / 13 - at(c))) / 255);
      }
  return smooth;
}

double mean_change(const Picture& before, const Picture& after) {
  double sum = 0;
  for (size_t i = 0; i < before.values.size(); ++i) sum += std::abs(level(after.values[i]) - level(before.values[i]));
  return sum / static_cast<double>(before.values.size());
}

TEST(Corruptions, FixedOnesEqualThePackages) {
  const Picture picture = to_picture(golden_image("input.ppm"));
  RandomStream random(0, "unused");
  for (const char* kind : {"defocus_blur", "zoom_blur", "brightness", "contrast", "pixelate", "jpeg_compression"})
    for (const int severity : {1, 3, 5}) {
      const std::string name = cat(kind, "_", severity);
      const Picture ours = find_corruption(kind).corrupt(picture, severity - 1, /*small=*/false, random);
      const Difference found = difference(ours, name);
      EXPECT_LE(found.largest, 1) << name;  // the last bit before the cut to levels
      EXPECT_LT(found.mean, 0.06) << name;
    }
}

TEST(Corruptions, MotionBlurEqualsThePackages) {
  const Picture picture = to_picture(golden_image("input.ppm"));
  for (const int angle : {-40, 10, 100})
    EXPECT_LE(difference(motion_blurred(picture, 10, 3, angle), cat("motion_blur_", angle)).largest, 1) << angle;
}

// Means over draws, of which ours and theirs have a standard error each.
TEST(Corruptions, RandomOnesChangeAsMuchAsThePackages) {
  std::ifstream file(test::source_path("tests/golden/corruptions/changes.json"));
  const Json theirs = Json::parse(file);
  const Picture picture = smooth_picture();
  for (const auto& [name, change] : theirs.items()) {
    const std::string kind = name.substr(0, name.rfind('_'));
    const int64_t severity = std::stoll(name.substr(name.rfind('_') + 1));
    std::vector<double> draws;
    for (uint64_t draw = 0; draw < 6; ++draw) {
      RandomStream random(1, "corrupt", draw);
      draws.push_back(mean_change(picture, corrupted(find_corruption(kind), picture, severity, random)));
    }
    const auto count = static_cast<double>(draws.size());
    const double mean = std::accumulate(draws.begin(), draws.end(), 0.0) / count;
    double variance = 0;
    for (const double draw : draws) variance += (draw - mean) * (draw - mean) / (count - 1);
    const double error = std::hypot(change.at(1).get<double>(), std::sqrt(variance / count));
    EXPECT_NEAR(mean, change.at(0).get<double>(), 4 * error + 0.02) << name;
  }
}

// Mean changes of the smooth picture by the package's photos, in levels: imagecorruptions 1.1.2, 30 draws.
TEST(Corruptions, GeneratedFrostIsAsStrongAsPhotos) {
  const Picture picture = smooth_picture();
  for (const auto& [severity, theirs] : {std::pair<int64_t, double>{1, 58.1}, {3, 62.8}, {5, 67.6}}) {
    double ours = 0;
    for (uint64_t draw = 0; draw < 6; ++draw) {
      RandomStream random(1, "corrupt", draw);
      ours += mean_change(picture, corrupted(find_corruption("frost"), picture, severity, random)) / 6;
    }
    EXPECT_NEAR(ours, theirs, 0.15 * theirs) << severity;
  }
}

// All but elastic_transform, whose published parameters move pixels less and more locally from severity 3 on.
TEST(Corruptions, EachOneChangesImagesMoreWithTheSeverity) {
  const Picture large = smooth_picture(), small = to_picture(golden_image("input.ppm"));
  for (const Corruption& corruption : all_corruptions())
    for (const Picture* picture : {&large, &small}) {
      const auto change = [&](int64_t severity) {
        RandomStream random(1, "corrupt");
        return mean_change(*picture, corrupted(corruption, *picture, severity, random));
      };
      const double first = change(1), last = change(5);
      EXPECT_GT(first, 0) << corruption.name;
      if (corruption.corrupt != elastic_transform) {
        EXPECT_GT(last, first) << corruption.name;
      }
    }
}

TEST(Corruptions, PoissonNoiseHasTheVarianceOfItsMean) {
  Picture grey_picture(1, 100, 100);
  for (float& value : grey_picture.values) value = 0.4F;
  for (const bool small : {false, true}) {
    RandomStream random(3, "shot");
    const double photons = small ? 500 : 60;
    const Picture noisy = shot_noise(grey_picture, 0, small, random);
    double mean = 0, square = 0;
    for (const float value : noisy.values) mean += value / 1e4, square += value * value / 1e4;
    EXPECT_NEAR(mean, 0.4, 4 * std::sqrt(0.4 / photons / 1e4));
    EXPECT_NEAR(square - mean * mean, 0.4 / photons, 0.06 * 0.4 / photons);
  }
}

TEST(Corruptions, AsATransformTheyDependOnTheStreamAlone) {
  const at::Tensor image = golden_image("input.ppm"), grey_image = golden_image("grey.pgm");
  for (const Corruption& corruption : all_corruptions()) {
    const TransformOp op = make_corrupt({corruption.name, 2});
    const auto apply = [&](const at::Tensor& to, uint64_t number) {
      ViewRandom random(RandomStream(5, "view", number));
      return op(to, random);
    };
    EXPECT_TRUE(apply(image, 1).equal(apply(image, 1))) << corruption.name;
    EXPECT_EQ(apply(grey_image, 1).sizes(), grey_image.sizes()) << corruption.name;
    EXPECT_EQ(apply(image, 1).scalar_type(), at::kByte);
  }
  const std::string refusal = testing::error_text([] { find_corruption("fogg"); });
  EXPECT_NE(refusal.find("did you mean \"fog\"?"), std::string::npos) << refusal;
}

}  // namespace
}  // namespace sparsight::corruptions::corruptions_test
