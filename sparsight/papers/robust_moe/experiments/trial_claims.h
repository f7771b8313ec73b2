// Claims about single trials, up to the error over test images (reproduce/image_error.h). Each makes many comparisons:
// it holds if all are within some standard errors, does not if one is on the wrong side with 1 - 5 % / (their number),
// and is undecided in between.
#pragma once

#include <string>

#include "sparsight/reproduce/figure.h"

namespace sparsight::robust_moe {

// From each value of the axis `x` to the next the measure falls by at most `deviations` standard errors, in rows that
// differ in nothing else.
Claim never_falls(const ResultTable& table, const std::string& text, const std::string& x, const std::string& measure,
                  double deviations);

// In every row the measure is at least `other` minus `deviations` standard errors.
Claim never_below(const ResultTable& table, const std::string& text, const std::string& measure,
                  const std::string& other, double deviations);

// In every row it differs from `other` by at most `deviations` standard errors.
Claim never_apart(const ResultTable& table, const std::string& text, const std::string& measure,
                  const std::string& other, double deviations);

// A measure strictly grows along the axis, in rows that differ in nothing else.
Claim always_grows(const ResultTable& table, const std::string& text, const std::string& x, const std::string& measure);

}  // namespace sparsight::robust_moe
