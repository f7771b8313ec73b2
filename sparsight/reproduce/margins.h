// How a claim is judged: it demands that some numbers are positive, and each has an interval over seeds and test
// images. The claim holds if the intervals of all are; it does not if that of one is negative; otherwise it is
// undecided. Where 0 is enough, numbers that are 0 in every seed do not keep it open if others are positive.
#pragma once

#include <string>
#include <vector>

#include "sparsight/reproduce/seed_estimate.h"

namespace sparsight {

// A number that must be positive.
struct Margin {
  Statistic statistic;
  std::string where = {};  // "at 900 samples"; "" if it is the only one
  // A bound of the number only: an upper one cannot show that the claim holds, a lower one not that it fails.
  enum class Bound { none, lower, upper };
  Bound bound = Bound::none;
};

struct MarginTest {
  bool ties = false;  // 0 is enough
  std::string unit = "points";
  int decimals = 1;
  std::string measured = {};  // replaces the text about the smallest margin
};

// The mean of a measure in one row minus that in another; minus a number; the number minus it.
Statistic row_difference(const Json& row, const Json& other, const std::string& measure);
Statistic above(const Json& row, const std::string& measure, double bound);
Statistic below(const Json& row, const std::string& measure, double bound);
// One number minus another.
Statistic minus(const Statistic& number, const Statistic& other);

// Intervals have 95 %. For a claim to fail, one of k margins must be negative with 1 - 5 % / k, so that many margins do
// not make it fail by chance.
Claim judge(const ResultTable& table, const std::string& text, const std::vector<Margin>& margins,
            const MarginTest& test = {});

// "95 % interval 0.3 to 2.1", "no interval from 1 seed"
std::string interval_text(const Estimate& estimate, int decimals);

// A claim about every single trial, in the rows whose settings contain `where`: no interval is needed. Undecided if
// nothing was measured.
Claim every_trial_at_most(const ResultTable& table, const std::string& text, const std::string& measure, double bound,
                          const Json& where = Json::object());
Claim every_trial_at_least(const ResultTable& table, const std::string& text, const std::string& measure, double bound,
                           const Json& where = Json::object());
// Two measures of a row are equal, to within rounding.
Claim every_trial_equal(const ResultTable& table, const std::string& text, const std::string& measure,
                        const std::string& other, const Json& where = Json::object());

}  // namespace sparsight
