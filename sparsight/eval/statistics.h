// Statistics of accuracies and of repeated runs: how far a number may be trusted, and whether two models differ.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace sparsight {

struct Interval {
  double low = 0, high = 0;
};

// Of at least one value.
double mean(const std::vector<double>& values);

// sqrt(sum of (x - mean)^2 / (n - ddof)): ddof 1 estimates the deviation of what the values are samples of, ddof 0 is
// that of the values themselves. Needs more than ddof values.
double standard_deviation(const std::vector<double>& values, int64_t ddof = 1);

// Of the mean: standard_deviation / sqrt(n). Needs two values.
double standard_error(const std::vector<double>& values);

// Where the probability of success lies, given that `successes` of `trials` were such (Wilson 1927, without continuity
// correction). Unlike mean +- z sd it stays within 0 to 1 and is right near both ends. confidence: above 0, below 1.
Interval wilson_interval(int64_t successes, int64_t trials, double confidence = 0.95);

// Whether two models that answered the same images differ (McNemar 1947): only the images on which exactly one is right
// say anything, and if the models are equally good each falls to either side with probability 1/2.
struct McNemar {
  int64_t only_a = 0, only_b = 0;   // images that only the first, only the second answered rightly
  bool exact = true;                // the binomial test; else chi-square with continuity correction
  std::optional<double> statistic;  // chi-square with one degree of freedom; of the test that is not exact
  double p_value = 1;               // two-sided
};
// Exact where fewer than kExactMcNemar images decide.
inline constexpr int64_t kExactMcNemar = 25;
McNemar mcnemar(int64_t only_a, int64_t only_b);

// How much a differs from b where a[i] and b[i] belong together: the same seed, the same image.
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

// P(T <= t) of Student's distribution, and the t that it is reached at. probability: above 0, below 1.
double student_t_cdf(double t, double degrees);
double student_t_quantile(double probability, double degrees);
// The same of the normal distribution.
double normal_cdf(double z);
double normal_quantile(double probability);

}  // namespace sparsight
