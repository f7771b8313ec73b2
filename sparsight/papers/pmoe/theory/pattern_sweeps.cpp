#include "sparsight/papers/pmoe/theory/pattern_sweeps.h"

#include <torch/types.h>

#include "sparsight/core/error.h"
#include "sparsight/core/random.h"
#include "sparsight/ops/random_fill.h"

namespace sparsight::pmoe {

PatternModelOptions swept_patterns(const PatternSweep& sweep, uint64_t seed) {
  PatternModelOptions options;
  options.seed = seed;
  options.patches = sweep.patches;
  options.width = sweep.width;
  options.separation = sweep.separation;
  options.relevance = sweep.relevance;
  RandomStream random(seed, "patterns.sweep");
  for (int64_t set = 0; set < sweep.sets; ++set) {
    const double first = random.uniform(-sweep.relevance, sweep.relevance);
    options.sets.push_back({first, random.uniform(-sweep.relevance, sweep.relevance)});
  }
  return options;
}

PlantedSamples plant_spurious(const PatternSamples& samples, const at::Tensor& patterns, double share,
                              const std::string& part, uint64_t seed) {
  const int64_t count = samples.patches.size(0), n = samples.patches.size(1), d = samples.patches.size(2);
  if (n < 2) fail_usage("planting a patch next to the pattern needs samples of at least 2 patches, got ", n);
  if (patterns.size(0) != 2) fail_usage("patches are planted for 2 classes, got ", patterns.size(0));
  const at::Tensor random_vectors = normal_like(patterns, {2, d}, RandomStream(seed, "patterns.planted"));
  // The last two columns of an orthonormal basis of all four vectors.
  const at::Tensor base = std::get<0>(torch::linalg_qr(torch::cat({patterns, random_vectors}).t(), "reduced"));
  const at::Tensor planted = base.narrow(1, 2, 2).t();
  PlantedSamples out{samples, torch::empty({count}, torch::kLong)};
  out.samples.patches = samples.patches.clone();
  for (int64_t i = 0; i < count; ++i) {
    RandomStream random(seed, "patterns.planted." + part, static_cast<uint64_t>(i));
    const auto pattern = samples.position[i].item<int64_t>(), label = samples.labels[i].item<int64_t>();
    const int64_t index = random.below(n - 1), position = index + (index >= pattern ? 1 : 0);
    out.samples.patches[i][position].copy_(planted[random.uniform() < share ? label : 1 - label]);
    out.planted[i] = position;
  }
  return out;
}

}  // namespace sparsight::pmoe
