#include "sparsight/attacks/threat_model.h"

#include <charconv>
#include <cmath>
#include <iomanip>
#include <sstream>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

// NaN if `text` is not a number.
double parse_number(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end ? value : std::nan("");
}

// NaN unless `text` is a number or a fraction of at least 0.
double parse_radius(const std::string& text) {
  const size_t slash = text.find('/');
  const double above = parse_number(text.substr(0, slash));
  const double below = slash == std::string::npos ? 1 : parse_number(text.substr(slash + 1));
  const double radius = above / below;
  return std::isfinite(radius) && above >= 0 && below > 0 ? radius : std::nan("");
}

constexpr char kEpsilonRule[] = "must be a number or a fraction of at least 0, such as 0.03 or \"8/255\", got ";

// A number or a fraction: TOML has no fractions, so they are text.
Option epsilon_option(std::string* epsilon) {
  Option option;
  option.name = "epsilon";
  option.type = "float or fraction";
  option.allowed = "at least 0";
  option.help = "radius of the perturbations, 0.03 or \"8/255\", in units of `range`";
  option.set = [epsilon](const Json& value) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (std::isnan(parse_radius(text))) fail_usage(kEpsilonRule, printable(text));
    *epsilon = text;
  };
  option.get = [epsilon] { return Json(*epsilon); };
  return option;
}

}  // namespace

void ThreatOptions::declare(OptionSet& set) {
  set.choice("norm", &norm, {"linf", "l2"}, "norm of the perturbations");
  set.include(epsilon_option(&epsilon));
  set.choice("range", &range, {"0..1", "-1..1", "0..255"}, "range of the pixels that epsilon refers to");
}

double parse_epsilon(const std::string& text) {
  const double radius = parse_radius(text);
  if (std::isnan(radius)) fail_usage("epsilon ", kEpsilonRule, printable(text));
  return radius;
}

PixelRange parse_pixel_range(const std::string& text) {
  if (text == "0..1") return {0, 1};
  if (text == "-1..1") return {-1, 1};
  if (text == "0..255") return {0, 255};
  fail_usage("pixel range \"", printable(text), "\": must be 0..1, -1..1 or 0..255");
}

ThreatModel make_threat(const ThreatOptions& options) {
  const ThreatModel given{parse_norm(options.norm), parse_epsilon(options.epsilon), parse_pixel_range(options.range)};
  const ThreatModel threat = in_range(given, {});
  if (threat.norm == Norm::linf && threat.epsilon >= 1)
    fail_usage("epsilon ", printable(options.epsilon), " of pixels in ", options.range,
               " lets every pixel have any value; give it in units of the range (", printable(options.epsilon),
               "/255?), or name another range");
  return threat;
}

void check_radius(const ThreatModel& threat, int64_t values) {
  if (threat.norm == Norm::linf) return;  // make_threat() looks at it
  const auto sides = static_cast<double>(values), reach = threat.norm == Norm::l2 ? std::sqrt(sides) : sides;
  if (threat.epsilon >= reach)
    fail_usage("the ", to_text(threat.norm), " epsilon ", threat.epsilon, " lets every pixel of an image of ", values,
               " values have any value; it must be below ", reach);
}

ThreatModel in_range(const ThreatModel& threat, const PixelRange& range) {
  return {threat.norm, threat.epsilon * (range.width() / threat.range.width()), range};
}

std::string to_text(const PixelRange& range) { return cat(range.low, "..", range.high); }

Norm parse_norm(const std::string& text) {
  for (const Norm norm : {Norm::linf, Norm::l2, Norm::l1})
    if (text == to_text(norm)) return norm;
  fail_usage("the norm \"", printable(text), "\": must be linf, l2 or l1");
}

std::string to_text(Norm norm) {
  if (norm == Norm::l1) return "l1";
  return norm == Norm::l2 ? "l2" : "linf";
}

std::string to_text(const ThreatModel& threat) {
  std::ostringstream epsilon;
  epsilon << std::setprecision(5) << threat.epsilon;
  return cat(to_text(threat.norm), ", epsilon ", epsilon.str(), " of pixels in ", to_text(threat.range));
}

}  // namespace sparsight
