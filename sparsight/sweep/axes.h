// What a sweep varies: a setting and its values, or the range that they are drawn from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sparsight {

struct SampleRange {
  enum class Kind { uniform, log, integers };  // log: the logarithm is uniform; integers: both ends are values
  Kind kind = Kind::uniform;
  double low = 0, high = 1;
};

struct SweepAxis {
  std::string key;                       // "optimizer.lr"
  std::vector<std::string> values = {};  // in TOML, all different; none where they are drawn
  std::optional<SampleRange> range = {};
};

// "optimizer.lr=1e-3,3e-3" or "optimizer.lr=log(1e-4,1e-1)" (also uniform, integers). Raises UsageError for other text.
SweepAxis parse_axis(const std::string& text);
// One axis for each text. Raises UsageError for a setting that is named twice, and where there are none.
std::vector<SweepAxis> parse_axes(const std::vector<std::string>& texts);

// A value for each axis: what one training has.
using SweepPoint = std::vector<std::string>;

// "optimizer.lr=0.001 router.k=2"
std::string point_text(const std::vector<SweepAxis>& axes, const SweepPoint& point);

// Every combination; the last axis changes fastest. Raises UsageError for an axis with a range, and above kMaxPoints.
std::vector<SweepPoint> grid_points(const std::vector<SweepAxis>& axes);

// `count` different combinations at random: more of them begin with the same ones. All, in the order of the grid, where
// there are no more. Raises UsageError above kMaxPoints, and where ranges have too few values.
std::vector<SweepPoint> random_points(const std::vector<SweepAxis>& axes, int64_t count, int64_t seed);

inline constexpr int64_t kMaxPoints = 10'000;

}  // namespace sparsight
