#include "sparsight/papers/robust_moe/theory/instances.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "sparsight/core/error.h"
#include "sparsight/core/random.h"
#include "sparsight/papers/robust_moe/theory/lcg.h"

namespace sparsight::robust_moe {
namespace {

// [rows,columns] of a function of row and column.
template <class Entry>
at::Tensor fill_table(int64_t rows, int64_t columns, const Entry& entry) {
  at::Tensor table = at::empty({rows, columns}, at::kDouble);
  auto* out = table.mutable_data_ptr<double>();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) *out++ = entry(static_cast<double>(r), static_cast<double>(c));
  return table;
}

at::Tensor normal_table(RandomStream& random, int64_t rows, int64_t columns) {
  return fill_table(rows, columns, [&](double, double) { return random.normal(); });
}

at::Tensor make_vector(std::initializer_list<double> values) { return at::tensor(values, at::kDouble); }

RoutedData split_by(const LabelledRows& rows, const std::vector<std::vector<int64_t>>& members) {
  RoutedData data;
  for (const std::vector<int64_t>& own : members) {
    if (own.empty()) continue;
    const at::Tensor index = at::tensor(own, at::kLong);
    data.inputs.push_back(rows.inputs.index_select(0, index));
    data.targets.push_back(rows.labels.index_select(0, index));
  }
  return data;
}

void check_split(const LabelledRows& rows, int64_t experts) {
  if (experts < 1 || experts > rows.inputs.size(0))
    fail_usage("a split needs 1 to ", rows.inputs.size(0), " experts, one per row at most, got ", experts);
}

}  // namespace

RoutedData two_expert_case(TwoExpertCase which) {
  const at::Tensor first = make_vector({1, 0, 0, 0, 1, 2, 0, 0}).view({2, 4}), targets = make_vector({1, -1});
  if (which == TwoExpertCase::same_targets) return {{first, first}, {targets, targets}};
  if (which == TwoExpertCase::opposite_targets) return {{first, first}, {targets, -targets}};
  return {{first, make_vector({0, 0, 2, 0, 0, 0, 1, 1}).view({2, 4})}, {targets, make_vector({0.5, 2})}};
}

RoutedData scalar_case(double first, double second) {
  const at::Tensor one = make_vector({1}).view({1, 1});
  return {{one, one}, {make_vector({first}), make_vector({second})}};
}

RoutedData orthogonal_blocks(bool equal_scales, std::optional<uint64_t> rotation) {
  const at::Tensor block = fill_table(3, 2, [](double r, double c) { return std::sin(1 + r + 2 * c); });
  RoutedData data;
  for (int64_t i = 0; i < 4; ++i) {
    const double scale = equal_scales ? 1 : 1 + 0.1 * static_cast<double>(i);
    at::Tensor inputs = at::zeros({3, 8}, at::kDouble);
    inputs.narrow(1, 2 * i, 2).copy_(scale * block);
    data.inputs.push_back(inputs);
    data.targets.push_back(scale * make_vector({1, -1, 1}));
  }
  if (!rotation) return data;
  RandomStream random(*rotation, "theory.rotation");
  const at::Tensor orthogonal = std::get<0>(at::linalg_qr(normal_table(random, 8, 8)));
  for (at::Tensor& inputs : data.inputs) inputs = inputs.matmul(orthogonal);
  return data;
}

RoutedData tilted_subspaces(double tilt) {
  RoutedData data;
  for (int64_t i = 0; i < 3; ++i) {
    const auto set = static_cast<double>(i);
    const at::Tensor mix =
        fill_table(4, 2, [=](double r, double c) { return std::sin(1 + 1.3 * r + 2 * c + 0.7 * set); });
    const at::Tensor directions = fill_table(2, 6, [=](double k, double d) {
      return (d == 2 * set + k ? 1 : 0) + tilt * std::cos(1 + set + 2 * k + 3 * d);
    });
    data.inputs.push_back((set + 1) * mix.matmul(directions));
    data.targets.push_back(fill_table(4, 1, [=](double r, double) { return std::cos(0.5 + r + 2 * set); }).view({4}));
  }
  return data;
}

RoutedData random_instance(int64_t experts, double tilt, bool shared, uint64_t seed) {
  if (experts < 1) fail_usage("a random instance needs at least 1 expert, got ", experts);
  RandomStream random(seed, "theory.instance");
  std::vector<int64_t> ranks;
  for (int64_t i = 0; i < experts; ++i) ranks.push_back(1 + random.below(3));
  // Own directions leave up to 2 dimensions that no expert needs.
  const int64_t width = shared ? 1 + random.below(4) : std::accumulate(ranks.begin(), ranks.end(), random.below(3));
  const double scale = std::pow(10, random.uniform(-3, 1));
  RoutedData data;
  int64_t begin = 0;
  for (const int64_t each : ranks) {
    const int64_t rank = std::min(each, width), samples = rank + random.below(4);
    at::Tensor directions = tilt * normal_table(random, rank, width);
    for (int64_t k = 0; k < rank; ++k) directions[k][(begin + k) % width] += 1;
    begin += rank;
    data.inputs.push_back(normal_table(random, samples, rank).matmul(directions));
    data.targets.push_back(scale * normal_table(random, samples, 1).view({samples}));
  }
  return data;
}

LabelledRows gaussian_rows(int64_t samples, int64_t width, uint32_t seed) {
  Lcg random(seed);
  const double scale = std::sqrt(static_cast<double>(width));
  LabelledRows rows;
  rows.inputs = fill_table(samples, width, [&](double, double) { return random.normal() / scale; });
  rows.labels = fill_table(samples, 1, [&](double, double) { return random.sign(); }).view({samples});
  return rows;
}

LabelledRows block_rows(int64_t blocks, uint32_t seed) {
  Lcg random(seed);
  LabelledRows rows{at::zeros({3 * blocks, 4 * blocks}, at::kDouble), at::empty({3 * blocks}, at::kDouble)};
  for (int64_t b = 0; b < blocks; ++b) {
    const at::Tensor block = fill_table(3, 4, [&](double, double) { return random.normal(); });
    rows.inputs.narrow(0, 3 * b, 3).narrow(1, 4 * b, 4).copy_(block / block.norm(2, {1}, true));
    rows.labels.narrow(0, 3 * b, 3).copy_(fill_table(3, 1, [&](double, double) { return random.sign(); }).view({3}));
  }
  return rows;
}

RoutedData split_consecutive(const LabelledRows& rows, int64_t experts) {
  check_split(rows, experts);
  std::vector<std::vector<int64_t>> members(static_cast<size_t>(experts));
  for (int64_t n = 0; n < rows.inputs.size(0); ++n)
    members[static_cast<size_t>(n * experts / rows.inputs.size(0))].push_back(n);
  return split_by(rows, members);
}

RoutedData split_modulo(const LabelledRows& rows, int64_t experts) {
  check_split(rows, experts);
  std::vector<std::vector<int64_t>> members(static_cast<size_t>(experts));
  for (int64_t n = 0; n < rows.inputs.size(0); ++n) members[static_cast<size_t>(n % experts)].push_back(n);
  return split_by(rows, members);
}

RoutedData split_randomly(const LabelledRows& rows, int64_t experts, uint64_t seed) {
  check_split(rows, experts);
  RandomStream random(seed, "theory.split");
  std::vector<std::vector<int64_t>> members(static_cast<size_t>(experts));
  for (int64_t n = 0; n < rows.inputs.size(0); ++n) members[static_cast<size_t>(random.below(experts))].push_back(n);
  return split_by(rows, members);
}

}  // namespace sparsight::robust_moe
