#include "sparsight/sweep/axes.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <regex>
#include <set>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/core/random.h"
#include "sparsight/core/toml.h"

namespace sparsight {
namespace {

constexpr double kMaxInteger = 1e15;  // all whole numbers below it are doubles

[[noreturn]] void refuse_axis(const std::string& text, const std::string& why) {
  fail_usage(
      "--grid takes SECTION.KEY=VALUE,VALUE,... or SECTION.KEY=log(LOW,HIGH), uniform(...) or integers(...), got \"",
      printable(text), "\"", why);
}

// Nothing for text that is no range.
std::optional<SampleRange> parse_range(const std::string& values, const std::string& text) {
  static const std::regex form(R"((uniform|log|integers)\(([^(),]{1,40}),([^(),]{1,40})\))");
  std::smatch parts;
  if (values.size() > 120 || !std::regex_match(values, parts, form)) return {};
  using Kind = SampleRange::Kind;
  SampleRange range;
  range.kind = parts[1] == "log" ? Kind::log : parts[1] == "integers" ? Kind::integers : Kind::uniform;
  const Json low = parse_toml_value(parts[2]), high = parse_toml_value(parts[3]);
  if (!low.is_number() || !high.is_number()) refuse_axis(text, ": the ends of a range are numbers");
  range.low = low, range.high = high;
  if (!(range.low < range.high) || !std::isfinite(range.high - range.low))
    refuse_axis(text, ": a range has LOW below HIGH");
  if (range.kind == Kind::log && range.low <= 0) refuse_axis(text, ": a logarithm needs ends above 0");
  if (range.kind == Kind::integers &&
      (!low.is_number_integer() || !high.is_number_integer() || range.low < -kMaxInteger || range.high > kMaxInteger))
    refuse_axis(text, ": the ends must be whole numbers");
  return range;
}

// u: in [0, 1). Four digits: a value that people can type again.
std::string sample_value(const SampleRange& range, RandomStream& random) {
  using Kind = SampleRange::Kind;
  if (range.kind == Kind::integers)
    return std::to_string(static_cast<int64_t>(range.low) +
                          random.below(static_cast<int64_t>(range.high) - static_cast<int64_t>(range.low) + 1));
  const double u = random.uniform(), value = range.kind == Kind::log ? range.low * std::pow(range.high / range.low, u)
                                                                     : range.low + (range.high - range.low) * u;
  char text[40];
  std::snprintf(text, sizeof text, "%.4g", std::clamp(value, range.low, range.high));
  const std::string number = text;
  return number.find_first_of(".e") == std::string::npos ? number + ".0" : number;
}

// The number of combinations of lists; nothing where a range has more values than are counted, or above kMaxPoints.
std::optional<int64_t> combinations(const std::vector<SweepAxis>& axes) {
  int64_t count = 1;
  for (const SweepAxis& axis : axes) {
    if (axis.range) return {};
    count *= std::ssize(axis.values);
    if (count > kMaxPoints) return {};
  }
  return count;
}

}  // namespace

SweepAxis parse_axis(const std::string& text) {
  const size_t equals = text.find('='), dot = text.find('.');
  if (equals == std::string::npos || dot == std::string::npos || dot == 0 || dot + 1 >= equals) refuse_axis(text, "");
  SweepAxis axis{text.substr(0, equals)};
  const std::string values = text.substr(equals + 1);
  axis.range = parse_range(values, text);
  if (axis.range) return axis;
  axis.values = split_toml_values(values);
  for (const std::string& value : axis.values) {
    if (value.empty()) refuse_axis(text, ": a value is empty");
    if (std::ranges::count(axis.values, value) > 1)
      refuse_axis(text, cat(": the value ", printable(value), " is there twice"));
  }
  return axis;
}

std::vector<SweepAxis> parse_axes(const std::vector<std::string>& texts) {
  if (texts.empty()) fail_usage("a sweep needs at least one --grid SECTION.KEY=VALUE,VALUE,...");
  std::vector<SweepAxis> axes;
  for (const std::string& text : texts) {
    axes.push_back(parse_axis(text));
    const auto same = [&](const SweepAxis& axis) { return axis.key == axes.back().key; };
    if (std::ranges::count_if(axes, same) > 1)
      fail_usage("--grid names ", printable(axes.back().key), " twice; give all its values at once");
  }
  return axes;
}

std::string point_text(const std::vector<SweepAxis>& axes, const SweepPoint& point) {
  std::string text;
  for (size_t a = 0; a < axes.size(); ++a) text += (a == 0 ? "" : " ") + axes[a].key + "=" + point[a];
  return text;
}

std::vector<SweepPoint> grid_points(const std::vector<SweepAxis>& axes) {
  for (const SweepAxis& axis : axes)
    if (axis.range)
      fail_usage("--grid ", printable(axis.key), " has a range; say how many settings are drawn: --random N");
  const std::optional<int64_t> count = combinations(axes);
  if (!count) fail_usage("the grid has more than ", kMaxPoints, " combinations; draw some of them with --random N");
  std::vector<SweepPoint> points;
  for (int64_t i = 0; i < *count; ++i) {
    SweepPoint point(axes.size());
    int64_t rest = i;
    for (size_t a = axes.size(); a-- > 0;) {
      point[a] = axes[a].values[static_cast<size_t>(rest % std::ssize(axes[a].values))];
      rest /= std::ssize(axes[a].values);
    }
    points.push_back(point);
  }
  return points;
}

std::vector<SweepPoint> random_points(const std::vector<SweepAxis>& axes, int64_t count, int64_t seed) {
  if (count > kMaxPoints) fail_usage("--random ", count, ": at most ", kMaxPoints, " settings are drawn");
  if (const auto all = combinations(axes); all && *all <= count) return grid_points(axes);
  constexpr int64_t kTries = 100;
  std::vector<SweepPoint> points;
  std::set<SweepPoint> seen;
  for (int64_t draw = 0; std::ssize(points) < count; ++draw) {
    if (draw > kTries * (std::ssize(points) + 1) + kTries)
      fail_usage("the ranges have fewer than ", count, " different values of four digits; draw fewer with --random");
    RandomStream random(static_cast<uint64_t>(seed), "sweep", static_cast<uint64_t>(draw));
    SweepPoint point;
    for (const SweepAxis& axis : axes)
      point.push_back(axis.range ? sample_value(*axis.range, random)
                                 : axis.values[static_cast<size_t>(random.below(std::ssize(axis.values)))]);
    if (seen.insert(point).second) points.push_back(point);
  }
  return points;
}

}  // namespace sparsight
