// The parts of a convolution's depth, and the outputs that they reach, by hand.
#include "sparsight/kernels/conv/conv_depth.h"

#include <gtest/gtest.h>

namespace sparsight::conv_depth_test {
namespace {

using cpu::DepthPart;
using cpu::Range;
using Parts = std::vector<DepthPart>;

constexpr Range kAll{0, 3};

}  // namespace

// 3 taps of 2 channels are 6 inputs: two rows of the kernel in 12, one in 11, two taps in 4, half a tap in 1.
TEST(ConvDepth, IsSplitBetweenRowsThenTapsThenChannels) {
  EXPECT_EQ(cpu::depth_parts(3, 2, 18), (Parts{{kAll, kAll, {0, 2}}}));
  EXPECT_EQ(cpu::depth_parts(3, 2, 12), (Parts{{{0, 1}, kAll, {0, 2}}, {{1, 3}, kAll, {0, 2}}}));
  EXPECT_EQ(cpu::depth_parts(3, 2, 11),
            (Parts{{{0, 1}, kAll, {0, 2}}, {{1, 2}, kAll, {0, 2}}, {{2, 3}, kAll, {0, 2}}}));
  const Parts four = cpu::depth_parts(3, 2, 4);
  ASSERT_EQ(four.size(), 6u);
  EXPECT_EQ(four[2], (DepthPart{{1, 2}, {0, 1}, {0, 2}}));
  EXPECT_EQ(four[3], (DepthPart{{1, 2}, {1, 3}, {0, 2}}));
  const Parts one = cpu::depth_parts(3, 2, 1);
  ASSERT_EQ(one.size(), 18u);
  EXPECT_EQ(one[7], (DepthPart{{1, 2}, {0, 1}, {1, 2}}));
  EXPECT_EQ(cpu::depth_parts(1, 1000, 400),
            (Parts{{{0, 1}, {0, 1}, {0, 333}}, {{0, 1}, {0, 1}, {333, 666}}, {{0, 1}, {0, 1}, {666, 1000}}}));
}

// Five positions with a zero on either side: tap 0 misses the first output, tap 2 the last; two of them miss neither.
TEST(ConvDepth, PartsReachOutputsWithATapOnTheMap) {
  const auto reach = [](Range taps, Range of) { return cpu::reached(taps, /*stride=*/1, /*zeros=*/1, /*side=*/5, of); };
  EXPECT_EQ(reach({0, 1}, {0, 5}), (Range{1, 5}));
  EXPECT_EQ(reach({1, 2}, {0, 5}), (Range{0, 5}));
  EXPECT_EQ(reach({2, 3}, {0, 5}), (Range{0, 4}));
  EXPECT_EQ(reach({0, 2}, {0, 5}), (Range{0, 5}));
  EXPECT_EQ(reach({0, 1}, {2, 4}), (Range{2, 4}));  // only a part of the outputs
  EXPECT_EQ(reach({0, 1}, {0, 1}).size(), 0);
}

// Stride 2, seven taps, three zeros before six positions: output o reads from 2 o - 3 on, of three outputs.
TEST(ConvDepth, PartsReachOutputsOfAStride) {
  const auto reach = [](Range taps) { return cpu::reached(taps, 2, 3, 6, {0, 3}); };
  EXPECT_EQ(reach({0, 1}), (Range{2, 3}));  // -3, -1, 1
  EXPECT_EQ(reach({1, 2}), (Range{1, 3}));  // -2, 0, 2
  EXPECT_EQ(reach({5, 6}), (Range{0, 2}));  // 2, 4, 6
  EXPECT_EQ(reach({6, 7}), (Range{0, 2}));  // 3, 5, 7
  EXPECT_EQ(reach({0, 7}), (Range{0, 3}));
}

}  // namespace sparsight::conv_depth_test
