// Numbers as people read them.
#pragma once

#include <optional>
#include <string>

namespace sparsight {

std::string fixed(double value, int decimals);                          // "0.046"
std::string percent(std::optional<double> fraction, int decimals = 2);  // "98.31 %", "-" without a value

}  // namespace sparsight
