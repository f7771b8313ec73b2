#include "sparsight/report/format.h"

#include <cmath>
#include <cstdio>

namespace sparsight {

std::string signed_fixed(double value, int decimals) { return (value < 0 ? "" : "+") + fixed(value, decimals); }

std::string grouped(int64_t value) {
  std::string digits = std::to_string(value);
  const size_t first = digits[0] == '-' ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string duration(double seconds) {
  if (!(seconds >= 0) || seconds > 1e12) return "-";
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  char text[64];
  if (seconds < 9.95) return fixed(seconds, 1) + " s";
  if (whole < 60) return std::to_string(whole) + " s";
  if (whole < 3600) {
    std::snprintf(text, sizeof text, "%d min %02d s", static_cast<int>(whole / 60), static_cast<int>(whole % 60));
  } else {
    std::snprintf(text, sizeof text, "%lld h %02d min", static_cast<long long>(whole / 3600),
                  static_cast<int>(whole / 60 % 60));
  }
  return text;
}

std::string split_name(const std::string& split) { return split == "val" ? "validation" : split; }

std::string csv_quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string with_prefix(std::optional<double> value) {
  if (!value) return "-";
  if (*value >= 1e9) return fixed(*value / 1e9, 2) + " G";
  if (*value >= 1e6) return fixed(*value / 1e6, 2) + " M";
  if (*value >= 1e3) return fixed(*value / 1e3, 1) + " k";
  return fixed(*value, 0);
}

}  // namespace sparsight
