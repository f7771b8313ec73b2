#include "sparsight/papers/pmoe/theory/pmoe_operations.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sparsight/core/error.h"
#include "sparsight/core/random.h"

namespace sparsight::pmoe {
namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b, int64_t& count) {
  count += std::ssize(a);
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// sum += factor * (a - b), or factor * a.
void add(Vector& sum, double factor, const Vector& a, const Vector* b, int64_t& count) {
  count += std::ssize(sum);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += factor * (a[i] - (b ? (*b)[i] : 0));
}

std::vector<Vector> random_vectors(int64_t count, int64_t width, RandomStream& random) {
  std::vector<Vector> rows(count, Vector(width));
  for (Vector& row : rows)
    for (double& value : row) value = random.normal() / std::sqrt(static_cast<double>(width));
  return rows;
}

// Indices of the l largest scores; ties go to the lower index.
std::vector<int64_t> largest(const Vector& scores, int64_t chosen) {
  std::vector<int64_t> positions(scores.size());
  std::iota(positions.begin(), positions.end(), 0);
  std::stable_sort(positions.begin(), positions.end(), [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  positions.resize(chosen);
  return positions;
}

// Softmax over the chosen patches. Differs from the paper: equation 4 as printed has no exp in its denominator.
Vector softmax(const Vector& scores, const std::vector<int64_t>& positions) {
  Vector gates;
  double sum = 0;
  for (const int64_t j : positions) gates.push_back(std::exp(scores[j] - scores[positions[0]]));
  for (const double gate : gates) sum += gate;
  for (double& gate : gates) gate /= sum;
  return gates;
}

void check_sizes(const PmoeSizes& sizes, int64_t experts, int64_t chosen) {
  if (experts < 1 || sizes.neurons < experts || sizes.neurons % experts != 0)
    fail_usage(sizes.neurons, " neurons cannot be split evenly among ", experts, " experts");
  if (chosen < 1 || chosen > sizes.patches) fail_usage(chosen, " of ", sizes.patches, " patches cannot be chosen");
  if (sizes.width < 1) fail_usage("patches need a width of 1 or more, got ", sizes.width);
}

}  // namespace

PmoeOperations count_pmoe_operations(PmoeTraining training, const PmoeSizes& sizes, RouterGradient form,
                                     uint64_t seed) {
  const bool routed = training != PmoeTraining::cnn, joint = training == PmoeTraining::joint;
  const int64_t experts = routed ? sizes.experts : 1, chosen = routed ? sizes.chosen : sizes.patches;
  check_sizes(sizes, experts, chosen);
  RandomStream random(seed, "pmoe.operations");
  const std::vector<Vector> x = random_vectors(sizes.patches, sizes.width, random),
                            routers = random_vectors(experts, sizes.width, random),
                            neurons = random_vectors(sizes.neurons, sizes.width, random);
  Vector output(sizes.neurons);  // a
  for (double& weight : output) weight = random.normal();

  PmoeOperations done;
  const int64_t each = sizes.neurons / experts;
  std::vector<std::vector<int64_t>> positions(experts);  // J_s
  std::vector<Vector> gates(experts);                    // G
  Vector hidden;                                         // [m][l]: <w_r, x_j>
  double logit = 0;
  for (int64_t s = 0; s < experts; ++s) {
    Vector scores(sizes.patches, 0);
    if (routed)
      for (int64_t j = 0; j < sizes.patches; ++j) scores[j] = dot(routers[s], x[j], done.routers_forward);
    positions[s] = largest(scores, chosen);
    gates[s] = joint ? softmax(scores, positions[s]) : Vector(chosen, 1.0);
    for (int64_t r = s * each; r < (s + 1) * each; ++r)
      for (int64_t at = 0; at < chosen; ++at) {
        hidden.push_back(dot(neurons[r], x[positions[s][at]], done.experts_forward));
        logit += output[r] / static_cast<double>(chosen) * std::max(hidden.back(), 0.0) * gates[s][at];
      }
  }

  const double slope = -1 / (1 + std::exp(logit)) / static_cast<double>(chosen);  // y = 1: -v / l
  Vector gradient(sizes.width);
  done.router_gradients.assign(experts, Vector(sizes.width, 0));
  for (int64_t s = 0; s < experts; ++s) {
    Vector use(chosen, 0);  // u_j: the expert's output for a patch
    for (int64_t r = s * each; r < (s + 1) * each; ++r) {
      std::fill(gradient.begin(), gradient.end(), 0);
      for (int64_t at = 0; at < chosen; ++at) {
        const double h = hidden[r * chosen + at];
        use[at] += output[r] * std::max(h, 0.0);
        add(gradient, slope * output[r] * gates[s][at] * (h >= 0), x[positions[s][at]], nullptr, done.experts_backward);
      }
    }
    if (!joint) continue;
    Vector& router = done.router_gradients[s];
    Vector mean(sizes.width, 0);
    if (form == RouterGradient::mean)
      for (int64_t at = 0; at < chosen; ++at)
        add(mean, gates[s][at], x[positions[s][at]], nullptr, done.routers_backward);
    for (int64_t at = 0; at < chosen; ++at) {
      const double factor = slope * use[at] * gates[s][at];
      if (form == RouterGradient::mean) add(router, factor, x[positions[s][at]], &mean, done.routers_backward);
      for (int64_t other = 0; form == RouterGradient::pairs && other < chosen; ++other)
        if (other != at)
          add(router, factor * gates[s][other], x[positions[s][at]], &x[positions[s][other]], done.routers_backward);
    }
  }
  return done;
}

}  // namespace sparsight::pmoe
