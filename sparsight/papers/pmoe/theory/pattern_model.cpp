#include "sparsight/papers/pmoe/theory/pattern_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include <torch/types.h>

#include "sparsight/core/error.h"
#include "sparsight/core/shuffle.h"

namespace sparsight::pmoe {
namespace {

using Vector = std::vector<double>;

double length(const Vector& x) { return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0)); }

Vector random_unit(int64_t width, RandomStream& random) {
  Vector x(static_cast<size_t>(width));
  for (double& value : x) value = random.normal();
  const double size = length(x);
  for (double& value : x) value /= size;
  return x;
}

// A random unit vector orthogonal to the unit vector `to`.
Vector random_orthogonal(const Vector& to, RandomStream& random) {
  Vector x = random_unit(std::ssize(to), random);
  const double along = std::inner_product(x.begin(), x.end(), to.begin(), 0.0);
  for (size_t i = 0; i < x.size(); ++i) x[i] -= along * to[i];
  const double size = length(x);
  for (double& value : x) value /= size;
  return x;
}

// [c,c] lower triangular: rows are unit vectors with inner products `separation`.
at::Tensor patterns_in_span(int64_t classes, double separation) {
  at::Tensor gram = torch::full({classes, classes}, separation, torch::kDouble);
  gram.fill_diagonal_(1);
  return torch::linalg_cholesky(gram).contiguous();
}

void check(const PatternModelOptions& o) {
  if (o.classes < 2) fail_usage("a pattern model needs at least 2 classes, got ", o.classes);
  if (o.width < o.classes + 2)
    fail_usage("patterns of ", o.classes, " classes need a width of at least ", o.classes + 2, ", got ", o.width);
  const double lowest = -1.0 / static_cast<double>(o.classes - 1);
  if (!(o.separation > lowest && o.separation < 1))
    fail_usage("no ", o.classes, " unit vectors have inner products of ", o.separation, "; it must be above ", lowest,
               " and below 1");
  if (!(o.relevance >= 0 && o.relevance < 1)) fail_usage("delta_r must be from 0 to below 1, got ", o.relevance);
  if (!(o.diameter > 0)) fail_usage("the sets' diameter must be above 0, got ", o.diameter);
  const int64_t sets = std::ssize(o.sets);
  if (o.patches < 1 || sets < 1) fail_usage("a pattern model needs at least 1 patch and 1 set of irrelevant patches");
  if (o.confuser_sets < 0 || o.confusers < 0 || (o.confusers > 0 && o.confuser_sets == 0))
    fail_usage("confusers need sets to be sampled from; set confuser_sets above 0");
  if (o.confuser_sets >= sets && o.confusers < o.patches - 1)
    fail_usage("all ", sets, " sets are confusers; ", o.patches - 1 - o.confusers,
               " patches of a sample have no set to be sampled from");
  if (o.confusers > o.patches - 1)
    fail_usage(o.confusers, " confusers do not fit beside the pattern in ", o.patches, " patches");
  for (const Vector& products : o.sets) {
    if (std::ssize(products) != o.classes)
      fail_usage("a set has ", products.size(), " inner products for ", o.classes, " patterns");
    for (const double product : products)
      if (!(std::abs(product) <= o.relevance))
        fail_usage("a set's inner product ", product, " is larger than delta_r = ", o.relevance);
  }
}

}  // namespace

PatternModelOptions easy_patterns(uint64_t seed) {
  PatternModelOptions options;
  options.seed = seed;
  RandomStream random(seed, "patterns.easy");
  for (int set = 0; set < 8; ++set) {
    const double first = random.uniform(-0.25, 0.25);
    options.sets.push_back({first, random.uniform(-0.25, 0.25)});
  }
  return options;
}

PatternModelOptions hard_patterns(uint64_t seed) {
  PatternModelOptions options;
  options.seed = seed;
  options.separation = 0.5;
  options.relevance = 0.4;
  options.sets = {{0.4, -0.4}, {-0.4, 0.4}};
  options.confuser_sets = 2;
  options.confusers = 5;
  RandomStream random(seed, "patterns.hard");
  for (int set = 0; set < 6; ++set) {
    const double first = random.uniform(-0.05, 0.05);
    options.sets.push_back({first, random.uniform(-0.05, 0.05)});
  }
  return options;
}

PatternModel::PatternModel(const PatternModelOptions& options) : options_(options) {
  check(options);
  const int64_t c = options.classes, d = options.width;
  const at::Tensor span = patterns_in_span(c, options.separation);
  patterns_ = torch::zeros({c, d}, torch::kDouble);
  patterns_.narrow(1, 0, c).copy_(span);
  RandomStream random(options.seed, "patterns.model");
  for (const Vector& products : options.sets) {
    const at::Tensor wanted = torch::tensor(products, torch::kDouble).unsqueeze(1);
    const at::Tensor solved = torch::linalg_solve_triangular(span, wanted, /*upper=*/false).squeeze(1).contiguous();
    inside_.emplace_back(solved.const_data_ptr<double>(), solved.const_data_ptr<double>() + c);
    if (const double size = length(inside_.back()); size > 1)
      fail_usage("no unit vector has these inner products with patterns that are ", options.separation,
                 " from each other: ", cat(at::ArrayRef<double>(products)), " needs a length of ", size,
                 "; move them closer to 0");
    centre_.push_back(random_unit(d - c, random));
  }
  if (options.rotate) {
    at::Tensor gaussian = torch::empty({d, d}, torch::kDouble);
    auto* at = gaussian.data_ptr<double>();
    for (int64_t i = 0; i < d * d; ++i) at[i] = random.normal();
    rotation_ = std::get<0>(torch::linalg_qr(gaussian, "reduced"));
    patterns_ = patterns_.matmul(rotation_);
  }
}

PatternSamples PatternModel::sample(const std::string& part, int64_t count) const {
  const int64_t n = options_.patches, c = options_.classes, d = options_.width;
  PatternSamples out{torch::zeros({count, n, d}, torch::kDouble), torch::empty({count}, torch::kLong),
                     torch::empty({count}, torch::kLong), torch::full({count, n}, -1, torch::kLong)};
  const at::Tensor span = patterns_in_span(c, options_.separation);
  const auto* o = span.const_data_ptr<double>();
  auto* x = out.patches.data_ptr<double>();
  auto *label = out.labels.data_ptr<int64_t>(), *position = out.position.data_ptr<int64_t>(),
       *set = out.set.data_ptr<int64_t>();
  const int64_t ordinary = std::ssize(options_.sets) - options_.confuser_sets;
  for (int64_t i = 0; i < count; ++i) {
    RandomStream random(options_.seed, "patterns." + part, static_cast<uint64_t>(i));
    label[i] = i % c;
    position[i] = random.below(n);
    const int64_t confuser = options_.confusers > 0 ? random.below(options_.confuser_sets) : 0;
    // Positions of the irrelevant patches in random order: the first ones are confusers.
    std::vector<int64_t> positions;
    for (int64_t j = 0; j < n; ++j)
      if (j != position[i]) positions.push_back(j);
    shuffle(positions, random);
    std::copy_n(o + label[i] * c, c, x + (i * n + position[i]) * d);
    for (int64_t k = 0; k < std::ssize(positions); ++k) {
      const int64_t which = k < options_.confusers ? confuser : options_.confuser_sets + random.below(ordinary);
      set[i * n + positions[k]] = which;
      double* const q = x + (i * n + positions[k]) * d;
      const Vector &inside = inside_[which], &centre = centre_[which];
      const double size = length(inside), across = std::sqrt(std::max(0.0, 1 - size * size));
      // No member is farther than half the diameter from the centre.
      const double sine = across > 0 ? largest_diameter() / (4 * across) : 0;
      const double angle = random.uniform(0, sine < 1 ? 2 * std::asin(sine) : std::numbers::pi);
      const Vector aside = random_orthogonal(centre, random);
      std::copy(inside.begin(), inside.end(), q);
      for (size_t j = 0; j < centre.size(); ++j)
        q[static_cast<size_t>(c) + j] = across * (std::cos(angle) * centre[j] + std::sin(angle) * aside[j]);
    }
  }
  if (rotation_.defined()) out.patches = out.patches.matmul(rotation_);
  return out;
}

double PatternModel::delta() const {
  const double maximum = std::max(std::abs(options_.separation), options_.relevance);
  return 1 / (1 - maximum * maximum);
}

double PatternModel::largest_diameter() const {
  const auto d = static_cast<double>(options_.width), p = static_cast<double>(options_.sets.size());
  return options_.diameter * std::sqrt((1 - options_.relevance * options_.relevance) / (d * p * p));
}

int64_t needed_patches(const PatternSamples& samples, const at::Tensor& patterns, double separation) {
  const at::Tensor products = samples.patches.matmul(patterns.t());  // [N,n,c]
  const at::Tensor gap = products.amax(2) - products.amin(2);        // the largest difference between two patterns
  const at::Tensor closer = (gap > (1 - separation) / 2 + 1e-9).logical_and(samples.set >= 0);
  return samples.patches.size(0) == 0 ? 1 : 1 + closer.sum(1).max().item<int64_t>();
}

PatchSet patch_set(const PatternSamples& samples, int64_t classes) {
  PatchSet set;
  set.table = samples.patches.flatten(0, 1).to(torch::kFloat);
  set.labels = samples.labels;
  set.position = samples.position;
  set.patches = samples.patches.size(1);
  set.classes = classes;
  return set;
}

}  // namespace sparsight::pmoe
