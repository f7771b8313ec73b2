// Claims about errors that must hold in every single trial, up to the error's own uncertainty: the standard error of a
// share p of n images, sqrt(p (1 - p) / n).
#pragma once

#include <string>

#include "sparsight/reproduce/figure.h"

namespace sparsight::robust_moe {

// A measure in percent of the images that the measure `images` counts.
struct ErrorMeasure {
  std::string key = "robust_error";
  std::string images = "images";
};

// From each value of the axis `x` to the next it falls by at most `deviations` standard errors, in rows that differ in
// nothing else.
Claim never_falls(const ResultTable& table, const std::string& text, const std::string& x, const ErrorMeasure& error,
                  double deviations);

// In every row it is at least `other` minus `deviations` standard errors of `other`.
Claim never_below(const ResultTable& table, const std::string& text, const ErrorMeasure& error,
                  const std::string& other, double deviations);

// In every row it differs from `other` by at most `deviations` standard errors.
Claim never_apart(const ResultTable& table, const std::string& text, const ErrorMeasure& error,
                  const std::string& other, double deviations);

// A measure strictly grows along the axis, in rows that differ in nothing else.
Claim always_grows(const ResultTable& table, const std::string& text, const std::string& x, const std::string& measure);

}  // namespace sparsight::robust_moe
