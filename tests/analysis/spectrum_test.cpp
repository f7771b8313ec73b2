#include "sparsight/analysis/spectrum.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/support/errors.h"
#include "tests/support/random_tensor.h"

namespace sparsight::spectrum_test {
namespace {

at::Tensor make_maps(const std::vector<double>& values, int64_t side) {
  return torch::tensor(values, torch::kDouble).view({-1, 1, side, side});
}

// Each map convolved with a 3 x 3 kernel, its borders joined.
at::Tensor filtered(const at::Tensor& maps, const std::vector<double>& kernel) {
  const int64_t channels = maps.size(1);
  const at::Tensor padded = at::cat({maps.slice(2, -1), maps, maps.slice(2, 0, 1)}, 2);
  const at::Tensor around = at::cat({padded.slice(3, -1), padded, padded.slice(3, 0, 1)}, 3);
  const at::Tensor weight = torch::tensor(kernel, torch::kDouble).view({1, 1, 3, 3}).expand({channels, 1, 3, 3});
  return at::conv2d(around, weight.contiguous(), {}, at::IntArrayRef{1, 1}, at::IntArrayRef{0, 0},
                    at::IntArrayRef{1, 1}, channels);
}

double changed_by(const std::vector<double>& kernel, const at::Tensor& maps) {
  return high_frequency_amplitude(filtered(maps, kernel)) - high_frequency_amplitude(maps);
}

// With amplitudes so large that the constant of 1e-6 in them does not show.
at::Tensor noise() { return 1000 * (1 + test::random_tensor({3, 2, 8, 8}, 4)); }

}  // namespace

// F(0,0) = 4 + 1 + 1 + 2 = 8, F(1,1) = 4 - 1 - 1 + 2 = 4.
TEST(Spectrum, OfTwoByTwoPixelsByHand) {
  const std::vector<double> found = relative_log_amplitudes(make_maps({4, 1, 1, 2}, 2));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], 0);
  EXPECT_NEAR(found[1], std::log(4.0 / 8.0), 1e-6);
}

// A row 1 2 3 4 above zeros: the sum of f(x) (-i)^x is -2 + 2i, of length 2.828427, and that of f(x) (-1)^x is -2; the
// constant part is 10. A second map, a single 3 at (2, 1), has the amplitude 3 everywhere, and halves the means.
TEST(Spectrum, OfFourByFourPixelsByHand) {
  std::vector<double> row(16, 0), point(16, 0);
  for (int x = 0; x < 4; ++x) row[static_cast<size_t>(x)] = x + 1;
  const std::vector<double> alone = relative_log_amplitudes(make_maps(row, 4));
  ASSERT_EQ(alone.size(), 3u);
  EXPECT_NEAR(alone[1], std::log(2.828427 / 10), 1e-6);
  EXPECT_NEAR(alone[2], std::log(2.0 / 10), 1e-6);
  point[9] = 3;
  row.insert(row.end(), point.begin(), point.end());
  const std::vector<double> both = relative_log_amplitudes(make_maps(row, 4));
  EXPECT_NEAR(both[1], std::log(2.828427 / 10) / 2, 1e-6);
  EXPECT_NEAR(both[2], std::log(2.0 / 10) / 2, 1e-6);
}

// torch's own transform, on the diagonal.
TEST(Spectrum, EqualsTheDiagonalOfAFourierTransform) {
  for (const int64_t side : {7, 8}) {
    const at::Tensor maps = test::random_tensor({2, 3, side, side}, 5);
    const at::Tensor logs = (at::fft_fft2(maps).abs() + 1e-6).log().mean(at::IntArrayRef{0, 1});
    const std::vector<double> found = relative_log_amplitudes(maps.to(torch::kDouble));
    ASSERT_EQ(std::ssize(found), side / 2 + 1);
    for (int64_t k = 0; k <= side / 2; ++k)
      EXPECT_NEAR(found[static_cast<size_t>(k)], (logs[k][k] - logs[0][0]).item<double>(), 1e-9);
  }
}

// The transfer function of the mean over 3 x 3 pixels is ((1 + 2 cos w) / 3)²: 1 at w = 0, 1/9 at pi.
TEST(Spectrum, AnAveragingKernelIsALowPassFilter) {
  EXPECT_NEAR(changed_by(std::vector<double>(9, 1.0 / 9), noise()), std::log(1.0 / 9), 1e-5);
}

// An image plus its Laplacian: 1 + 4 - 4 cos w on the diagonal, 1 at w = 0 and 9 at pi. The Laplacian alone removes the
// constant part: 1e-6 is left of it, and 8 times the amplitude at pi.
TEST(Spectrum, ALaplacianIsAHighPassFilter) {
  EXPECT_NEAR(changed_by({0, -1, 0, -1, 5, -1, 0, -1, 0}, noise()), std::log(9.0), 1e-5);
  const at::Tensor constant_part = (noise().sum(at::IntArrayRef{2, 3}).abs() + 1e-6).log().mean();
  EXPECT_NEAR(changed_by({0, -1, 0, -1, 4, -1, 0, -1, 0}, noise()),
              std::log(8.0) + constant_part.item<double>() - std::log(1e-6), 1e-3);
}

TEST(Spectrum, NeedsFiniteSquareMaps) {
  const auto message = [](const at::Tensor& maps) {
    return testing::error_text([&] { relative_log_amplitudes(maps); });
  };
  EXPECT_NE(message(torch::zeros({1, 1, 4, 5})).find("got [1, 1, 4, 5]"), std::string::npos);
  EXPECT_NE(message(torch::zeros({1, 1, 1, 1})).find("at least 2"), std::string::npos);
  EXPECT_NE(message(torch::zeros({0, 1, 4, 4})).find("at least 2"), std::string::npos);
  EXPECT_NE(message(torch::full({1, 1, 2, 2}, std::numeric_limits<double>::quiet_NaN())).find("not finite"),
            std::string::npos);
}

}  // namespace sparsight::spectrum_test
