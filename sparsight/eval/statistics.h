// Statistics of accuracies and of repeated runs: confidence intervals, and tests of whether two models differ.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace sparsight {

struct Interval {
  double low = 0, high = 0;
};

// Needs at least one value.
double mean(const std::vector<double>& values);

// sqrt(sum of (x - mean)^2 / (n - ddof)): ddof 1 estimates the deviation of the population from a sample, ddof 0 is
// that of the values themselves. Needs more than ddof values.
double standard_deviation(const std::vector<double>& values, int64_t ddof = 1);

// The standard error of the mean: standard_deviation / sqrt(n). Needs two values.
double standard_error(const std::vector<double>& values);

// Confidence interval of the probability of success, given `successes` of `trials` (Wilson 1927, without continuity
// correction). Unlike mean +- z sd it stays within 0 to 1 and is accurate near both ends. confidence: above 0, below 1.
Interval wilson_interval(int64_t successes, int64_t trials, double confidence = 0.95);

// Whether two models evaluated on the same images differ (McNemar 1947): only the images on which exactly one is right
// count, and if the models are equally good each such image favours either with probability 1/2.
struct McNemar {
  int64_t only_a = 0, only_b = 0;   // images that only the first, only the second classified correctly
  bool exact = true;                // the binomial test; else chi-square with continuity correction
  std::optional<double> statistic;  // chi-square with one degree of freedom; only of the test that is not exact
  double p_value = 1;               // two-sided
};
// Exact if only_a + only_b is below kExactMcNemar.
inline constexpr int64_t kExactMcNemar = 25;
McNemar mcnemar(int64_t only_a, int64_t only_b);

// The difference of paired values: a[i] and b[i] have the same seed or the same image.
struct PairedDifference {
  int64_t pairs = 0;
  double mean = 0;  // of a - b
  double standard_deviation = 0;
  double standard_error = 0;
  Interval interval;   // of the mean: Student's t with pairs - 1 degrees of freedom
  double p_value = 1;  // two-sided, of the mean being 0
};
// Needs two pairs.
PairedDifference paired_difference(const std::vector<double>& a, const std::vector<double>& b,
                                   double confidence = 0.95);

// P(T <= t) of Student's distribution, and its inverse. probability: above 0, below 1.
double student_t_cdf(double t, double degrees);
double student_t_quantile(double probability, double degrees);
// P(Z <= z) of the normal distribution, and its inverse.
double normal_cdf(double z);
double normal_quantile(double probability);

}  // namespace sparsight
