// The threat model: which perturbed images an attack may return. Papers give epsilon in different units (255ths, pixels
// in 0..1, pixels in -1..1), so an epsilon always comes with its pixel range; the canonical range is 0..1.
#pragma once

#include <string>

#include "sparsight/core/options.h"

namespace sparsight {

enum class Norm { linf, l2, l1 };

// The values that a pixel may have.
struct PixelRange {
  double low = 0, high = 1;
  double width() const { return high - low; }
  bool operator==(const PixelRange&) const = default;
};

// All x' with ||x' - x|| <= epsilon whose pixels are in `range`. epsilon is in units of `range`.
struct ThreatModel {
  Norm norm = Norm::linf;
  double epsilon = 8.0 / 255;
  PixelRange range = {};
};

struct ThreatOptions {
  std::string norm = "linf";      // "linf", "l2" or "l1"; training declares the first two
  std::string epsilon = "8/255";  // a number, or a fraction
  std::string range = "0..1";     // of the pixels that epsilon refers to
  void declare(OptionSet& set);
};

// In the canonical range 0..1. Raises UsageError for an epsilon that is no number or fraction, is negative, or with
// linf covers the whole range of pixels.
ThreatModel make_threat(const ThreatOptions& options);
// Raises UsageError for an epsilon that reaches all of the pixels' box: in l2 its diagonal, in l1 the sum of its sides,
// of images of `values` pixel values.
void check_radius(const ThreatModel& threat, int64_t values);

// "8/255" or "0.03". Raises UsageError unless it is a finite number >= 0.
double parse_epsilon(const std::string& text);

// The same threat for pixels of another range: epsilon scales by the ratio of the widths.
ThreatModel in_range(const ThreatModel& threat, const PixelRange& range);

// "0..1", "-1..1", "0..255". Raises UsageError for others.
PixelRange parse_pixel_range(const std::string& text);
std::string to_text(const PixelRange& range);
// "linf", "l2", "l1". Raises UsageError for others.
Norm parse_norm(const std::string& text);
std::string to_text(Norm norm);
// "linf, epsilon 0.031373 of pixels in 0..1"
std::string to_text(const ThreatModel& threat);

}  // namespace sparsight
