// Human-readable numbers and names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sparsight/core/number_text.h"

namespace sparsight {

std::string signed_fixed(double value, int decimals);  // "+0.046", "-0.046"
std::string grouped(int64_t value);                    // "1,234,567"
std::string with_prefix(std::optional<double> value);  // "1.23 M", an SI prefix from a thousand on; "-" without a value
std::string duration(double seconds);                  // "42 s", "2 min 33 s", "3 h 07 min"
std::string split_name(const std::string& split);      // "val" is "validation"; others unchanged
std::string csv_quoted(const std::string& text);       // as a field of CSV, RFC 4180

}  // namespace sparsight
