#include "sparsight/eval/statistics.h"

#include <algorithm>
#include <cmath>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

// The continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8) by Lentz's method; converges
// quickly for x below (a + 1) / (a + b + 2).
double beta_fraction(double x, double a, double b) {
  constexpr double kTiny = 1e-300, kPrecision = 1e-16;
  constexpr int kTerms = 100000;
  const auto nonzero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / nonzero(1 - (a + b) * x / (a + 1)), result = d;
  for (int m = 1; m <= kTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / nonzero(1 + even * d);
    c = nonzero(1 + even / c);
    result *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / nonzero(1 + odd * d);
    c = nonzero(1 + odd / c);
    result *= d * c;
    if (std::abs(d * c - 1) < kPrecision) break;
  }
  return result;
}

// I_x(a, b), with y = 1 - x passed separately so that a small y keeps its precision.
double regularised_beta(double x, double y, double a, double b) {
  if (x <= 0) return 0;
  if (y <= 0) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log(y));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(x, a, b) / a;
  return 1 - front * beta_fraction(y, b, a) / b;
}

// P(|T| > t)
double two_sided_t(double t, double degrees) {
  const double square = t * t;
  return regularised_beta(degrees / (degrees + square), square / (degrees + square), degrees / 2, 0.5);
}

// The point where an increasing function reaches `level`, to full precision, by bisection.
template <class Function>
double reached_at(double level, const Function& function) {
  double low = -1, high = 1;
  while (function(low) > level) low *= 2;
  while (function(high) < level) high *= 2;
  for (int i = 0; i < 200; ++i) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    (function(middle) < level ? low : high) = middle;
  }
  return low + (high - low) / 2;
}

}  // namespace

double mean(const std::vector<double>& values) {
  SPARSIGHT_CHECK(!values.empty());
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double standard_deviation(const std::vector<double>& values, int64_t ddof) {
  SPARSIGHT_CHECK(std::ssize(values) > ddof);
  const double centre = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - centre) * (value - centre);
  return std::sqrt(squares / static_cast<double>(std::ssize(values) - ddof));
}

double standard_error(const std::vector<double>& values) {
  return standard_deviation(values) / std::sqrt(static_cast<double>(values.size()));
}

Interval wilson_interval(int64_t successes, int64_t trials, double confidence) {
  SPARSIGHT_CHECK(trials > 0 && successes >= 0 && successes <= trials && confidence > 0 && confidence < 1);
  const auto n = static_cast<double>(trials);
  const double z = normal_quantile((1 + confidence) / 2), share = static_cast<double>(successes) / n;
  const double centre = share + z * z / (2 * n), half = z * std::sqrt(share * (1 - share) / n + z * z / (4 * n * n)),
               scale = 1 + z * z / n;
  // The ends are exactly 0 and 1 if all trials had the same outcome; rounding may miss that.
  return {successes == 0 ? 0 : std::max(0.0, (centre - half) / scale),
          successes == trials ? 1 : std::min(1.0, (centre + half) / scale)};
}

McNemar mcnemar(int64_t only_a, int64_t only_b) {
  SPARSIGHT_CHECK(only_a >= 0 && only_b >= 0);
  McNemar test{only_a, only_b, true, std::nullopt, 1};
  const int64_t deciding = only_a + only_b;
  if (deciding >= kExactMcNemar) {
    const double distance = std::max(0.0, std::abs(static_cast<double>(only_a - only_b)) - 1);
    test.exact = false;
    test.statistic = distance * distance / static_cast<double>(deciding);
    test.p_value = std::erfc(std::sqrt(*test.statistic / 2));
    return test;
  }
  double term = 1, tail = 0;  // terms are C(n, i), exact in doubles for so few
  for (int64_t i = 0; i <= std::min(only_a, only_b); ++i) {
    tail += term;
    term = term * static_cast<double>(deciding - i) / static_cast<double>(i + 1);
  }
  test.p_value = std::min(1.0, 2 * std::ldexp(tail, static_cast<int>(-deciding)));
  return test;
}

PairedDifference paired_difference(const std::vector<double>& a, const std::vector<double>& b, double confidence) {
  SPARSIGHT_CHECK(a.size() == b.size() && a.size() >= 2 && confidence > 0 && confidence < 1);
  std::vector<double> differences(a.size());
  for (size_t i = 0; i < a.size(); ++i) differences[i] = a[i] - b[i];
  PairedDifference result;
  result.pairs = std::ssize(a);
  result.mean = mean(differences);
  result.standard_deviation = standard_deviation(differences);
  result.standard_error = standard_error(differences);
  const auto degrees = static_cast<double>(result.pairs - 1);
  const double half = student_t_quantile((1 + confidence) / 2, degrees) * result.standard_error;
  result.interval = {result.mean - half, result.mean + half};
  if (result.standard_error > 0)
    result.p_value = two_sided_t(result.mean / result.standard_error, degrees);
  else
    result.p_value = result.mean == 0 ? 1 : 0;
  return result;
}

double student_t_cdf(double t, double degrees) {
  const double tail = two_sided_t(t, degrees) / 2;
  return t > 0 ? 1 - tail : tail;
}

double student_t_quantile(double probability, double degrees) {
  SPARSIGHT_CHECK(probability > 0 && probability < 1 && degrees > 0);
  if (probability > 0.5) return -student_t_quantile(1 - probability, degrees);  // the cdf is more precise there
  return reached_at(probability, [&](double t) { return student_t_cdf(t, degrees); });
}

double normal_cdf(double z) { return std::erfc(-z / std::sqrt(2.0)) / 2; }

double normal_quantile(double probability) {
  SPARSIGHT_CHECK(probability > 0 && probability < 1);
  if (probability > 0.5) return -normal_quantile(1 - probability);
  return reached_at(probability, normal_cdf);
}

}  // namespace sparsight
