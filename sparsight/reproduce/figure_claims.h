// Claims that papers make about curves, built from a table and judged by margins.h: which is higher, which needs fewer
// samples, which rises.
#pragma once

#include <optional>
#include <string>

#include "sparsight/reproduce/margins.h"

namespace sparsight {

// Every mean of the measure, of the rows whose settings contain `where`, is at least (at most) `bound`.
Claim all_at_least(const ResultTable& table, const std::string& text, const std::string& measure, double bound,
                   const Json& where = Json::object());
Claim all_at_most(const ResultTable& table, const std::string& text, const std::string& measure, double bound,
                  const Json& where = Json::object());

// Two curves of a table: the mean of `measure` against the axis `x`, for two values of the axis `series`.
struct CurvePair {
  std::string ours, theirs;
  std::string series = "model", x = "samples", measure = "accuracy";
};

// At every x, ours is above theirs, or at least not below where `ties_count`. measured: "at least 1.2 points (at 900
// samples), 95 % interval 0.3 to 2.1".
Claim above_everywhere(const ResultTable& table, const std::string& text, const CurvePair& pair,
                       bool ties_count = false);

// Ours reaches `level` with at most `share` of the x at which theirs first does, interpolated linearly between
// measured points. level null: theirs at its largest x. measured: "506 of 775 samples: 65 %, 95 % interval 50 to 81".
// A curve that starts above the level, or ends below it, bounds the share; such an end is named.
Claim reached_with_share(const ResultTable& table, const std::string& text, const CurvePair& pair,
                         std::optional<double> level, double share);

// At the largest x, ours is further above theirs in `here` than in `there`.
Claim larger_gap(const ResultTable& table, const std::string& text, const CurvePair& here, const CurvePair& there);

// Theirs divided by ours is at least `ratio` at every x.
Claim min_ratio(const ResultTable& table, const std::string& text, const CurvePair& pair, double ratio);

// The mean over all rows with the last value of an axis is above (below) the mean over those with its first value.
Claim rises_between_ends(const ResultTable& table, const std::string& text, const std::string& axis,
                         const std::string& measure);
Claim falls_between_ends(const ResultTable& table, const std::string& text, const std::string& axis,
                         const std::string& measure);

// The exponent of the power law that the means of a measure follow lies within low and high.
Claim slope_within(const ResultTable& table, const std::string& text, const std::string& x, const std::string& measure,
                   Interval range);

// (x, mean) of the rows whose settings contain `where`, in order of x; rows without a value are left out.
std::vector<std::pair<double, double>> mean_curve(const SeedMeans& mean, const std::string& x,
                                                  const std::string& measure, const Json& where = Json::object());

}  // namespace sparsight
