// Noise of a sensor.
#include <cmath>

#include "sparsight/data/corruptions/corruptions.h"

namespace sparsight::corruptions {
namespace {

constexpr double kGaussian[2][kSeverities] = {{.08, .12, .18, .26, .38}, {.04, .06, .08, .09, .10}};
constexpr double kPhotons[2][kSeverities] = {{60, 25, 12, 5, 3}, {500, 250, 100, 75, 50}};
constexpr double kImpulses[2][kSeverities] = {{.03, .06, .09, .17, .27}, {.01, .02, .03, .05, .07}};

// By the product of uniform numbers for small means, by transformed rejection for others (Hoermann 1993, "The
// transformed rejection method for generating Poisson random variables", algorithm PTRS).
double poisson(double mean, RandomStream& random) {
  if (mean <= 0) return 0;
  if (mean < 10) {
    const double limit = std::exp(-mean);
    double product = random.uniform(), count = 0;
    for (; product > limit; ++count) product *= random.uniform();
    return count;
  }
  const double root = std::sqrt(mean), log_mean = std::log(mean);
  const double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b, inverse = 1.1239 + 1.1328 / (b - 3.4),
               accepted = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    const double u = random.uniform() - 0.5, v = 1 - random.uniform(), us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + mean + 0.43);
    if (us >= 0.07 && v <= accepted) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inverse) - std::log(a / (us * us) + b) <= -mean + k * log_mean - std::lgamma(k + 1))
      return k;
  }
}

}  // namespace

Picture gaussian_noise(const Picture& picture, int severity, bool small, RandomStream& random) {
  Picture noisy = picture;
  for (float& value : noisy.values) value += static_cast<float>(kGaussian[small][severity] * random.normal());
  return noisy;
}

Picture shot_noise(const Picture& picture, int severity, bool small, RandomStream& random) {
  const double photons = kPhotons[small][severity];
  Picture noisy = picture;
  for (float& value : noisy.values) value = static_cast<float>(poisson(value * photons, random) / photons);
  return noisy;
}

Picture impulse_noise(const Picture& picture, int severity, bool small, RandomStream& random) {
  Picture noisy = picture;
  for (float& value : noisy.values)
    if (random.uniform() < kImpulses[small][severity]) value = random.uniform() < 0.5 ? 1.0F : 0.0F;
  return noisy;
}

}  // namespace sparsight::corruptions
