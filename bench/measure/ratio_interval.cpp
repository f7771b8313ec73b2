#include "bench/measure/ratio_interval.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>

namespace sparsight::bench {
namespace {

constexpr double kCoverage = 0.95;

// Coverage of the interval from the i-th smallest of n values to the i-th largest, for i = 1, 2 ...; starting at i = 1.
struct Coverage {
  double term;  // P(Binomial(n, 1/2) = i - 1)
  double value;
  int n, i = 1;
  explicit Coverage(int count) : term(std::ldexp(1.0, -count)), value(1 - 2 * term), n(count) {}
  Coverage next() const {
    Coverage following = *this;
    following.term *= static_cast<double>(n - i + 1) / i;
    following.value -= 2 * following.term;
    ++following.i;
    return following;
  }
};

// The largest i whose interval covers kCoverage, or else 1.
Coverage chosen(int n) {
  Coverage best(n);
  for (Coverage next = best.next(); next.value >= kCoverage; next = next.next()) best = next;
  return best;
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

MedianInterval median_interval(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const Coverage coverage = chosen(static_cast<int>(values.size()));
  const auto i = static_cast<size_t>(coverage.i);
  return {median(values), values[i - 1], values[values.size() - i], std::max(0.0, coverage.value)};
}

MedianInterval ratio_interval(const std::vector<double>& ours, const std::vector<double>& other) {
  std::vector<double> ratios;
  for (size_t round = 0; round < ours.size(); ++round) ratios.push_back(ours[round] / other[round]);
  return median_interval(std::move(ratios));
}

std::string text(const MedianInterval& interval) {
  char buffer[96];
  std::snprintf(buffer, sizeof buffer, "%.2f [%.2f, %.2f]", interval.median, interval.low, interval.high);
  return buffer;
}

std::string interval_note(int rounds) {
  const Coverage coverage = chosen(rounds);
  char buffer[160];
  std::snprintf(buffer, sizeof buffer, "%s interval of the median (order statistics of %d rounds; covers %.1f %%)",
                coverage.value >= kCoverage ? "95 %" : "widest", rounds, 100 * std::max(0.0, coverage.value));
  return buffer;
}

}  // namespace sparsight::bench
