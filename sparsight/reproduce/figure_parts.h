// Building blocks of figures: sizes by scale, jobs with several seeds, points of a curve, numbers as text.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sparsight/reproduce/figure.h"

namespace sparsight {

template <class T>
T by_scale(const FigureRun& run, T smoke, T small, T paper) {
  return run.scale == Scale::smoke ? smoke : run.scale == Scale::small ? small : paper;
}

// Each of `settings` once for every seed 0..seeds-1.
std::vector<Json> with_seeds(const std::vector<Json>& settings, int64_t seeds);

// (x, mean of the measure) of the rows whose settings contain `where`; rows without a value are left out.
std::vector<std::pair<double, double>> measured_points(const ResultTable& table, const std::string& x,
                                                       const std::string& measure, const Json& where = Json::object());

// The claims, without verdicts at scale smoke, where the numbers are meaningless.
std::vector<Claim> judged(std::vector<Claim> claims, const FigureRun& run);

// Whether `settings` has every entry of `where`.
bool contains(const Json& settings, const Json& where);

std::string shown_number(double value, int digits = 4);  // significant digits

}  // namespace sparsight
