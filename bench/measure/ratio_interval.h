// The ratio of two times that were measured in the same rounds, with its uncertainty.
#pragma once

#include <string>
#include <vector>

namespace sparsight::bench {

// The middle value, or the mean of the two middle ones. values: at least one.
double median(std::vector<double> values);

// An interval for the median of the distribution that independent values come from, by order statistics: the i-th
// smallest to the i-th largest value misses that median with probability 2 P(Binomial(n, 1/2) < i), whatever the
// distribution. i is the largest whose interval covers it with at least 95 %. Fewer than 6 values cannot: their
// interval is from the smallest to the largest, with the coverage that it has (5 values: 94 %).
// (David and Nagaraja 2003, "Order Statistics", section 7.1.)
struct MedianInterval {
  double median = 0, low = 0, high = 0;
  double coverage = 0;  // 0 to 1
};
MedianInterval median_interval(std::vector<double> values);

// The interval of the ratios ours / other, round by round: below 1 ours is faster. Slow phases of the machine affect
// both times of a round, and so cancel. Both have one value per round.
MedianInterval ratio_interval(const std::vector<double>& ours, const std::vector<double>& other);

std::string text(const MedianInterval& interval);  // "0.83 [0.79, 0.90]"

// What the intervals of a table of so many rounds are: "95 % interval (order statistics of 7 rounds; covers 98.4 %)".
std::string interval_note(int rounds);

}  // namespace sparsight::bench
