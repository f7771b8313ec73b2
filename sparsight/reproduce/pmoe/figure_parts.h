// What figures of the theory share: sizes by scale, jobs of several seeds, points of a curve, words.
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
std::vector<std::pair<double, double>> curve(const ResultTable& table, const std::string& x, const std::string& measure,
                                             const Json& where = Json::object());

// A claim that every mean of the measure, of the rows whose settings contain `where`, is at least (at most) `bound`.
Claim all_at_least(const ResultTable& table, const std::string& text, const std::string& measure, double bound,
                   const Json& where = Json::object());
Claim all_at_most(const ResultTable& table, const std::string& text, const std::string& measure, double bound,
                  const Json& where = Json::object());

std::string shown_number(double value, int digits = 4);  // significant ones

}  // namespace sparsight
