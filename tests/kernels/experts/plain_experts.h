// Experts in plain loops and fp64, from their formula: y_j = sum over the rows r of token j of
// gate_r * (act(x_j W1 + b1) W2 + b2), with the weights of the row's expert.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "sparsight/kernels/experts/expert_mlp.h"

namespace sparsight::testing {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using Numbers = std::vector<int64_t>;

inline Floats random_floats(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  Floats out(static_cast<size_t>(count));
  for (float& x : out) x = normal(random);
  return out;
}

// E experts of width D and hidden width F, and `k` rows of each of N tokens at experts in turn.
struct PlainExperts {
  int64_t experts, width, hidden, tokens, k;
  Floats w1, b1, w2, b2, x, gate;
  Numbers offset, row_token, token_rows, token_offsets;

  PlainExperts(int64_t e, int64_t d, int64_t f, int64_t n, int64_t chosen)
      : experts(e), width(d), hidden(f), tokens(n), k(chosen) {
    w1 = random_floats(e * d * f, 1), b1 = random_floats(e * f, 2);
    w2 = random_floats(e * f * d, 3), b2 = random_floats(e * d, 4);
    for (float& w : w1) w /= std::sqrt(static_cast<float>(d));
    for (float& w : w2) w /= std::sqrt(static_cast<float>(f));
    x = random_floats(n * d, 5), gate = random_floats(n * k, 6);
    Numbers token, order;
    for (int64_t expert = 0; expert < e; ++expert) {
      offset.push_back(static_cast<int64_t>(order.size()));
      for (int64_t a = 0; a < n * k; ++a)
        if ((a / k + a % k * 2) % e == expert) order.push_back(a);
    }
    offset.push_back(n * k);
    for (int64_t a = 0; a < n * k; ++a) token.push_back(a / k);
    row_token.resize(order.size()), token_rows.resize(order.size()), token_offsets.resize(static_cast<size_t>(n + 1));
    cpu::number_rows(token.data(), n * k, order.data(), n * k, n, row_token.data(), token_rows.data(),
                     token_offsets.data());
  }

  int64_t rows() const { return tokens * k; }
  cpu::ExpertRowNumbers numbers() const {
    return {.map = {tokens, rows(), row_token.data(), token_rows.data(), token_offsets.data()},
            .in_place = false,
            .offset = offset.data(),
            .gate = gate.data(),
            .dropout = nullptr};
  }
  cpu::StoredExperts stored() const {
    return {.shape = {experts, width, hidden, rows()},
            .b1 = b1.data(),
            .b2 = b2.data(),
            .w1 = {const_cast<float*>(w1.data()), width, hidden, false},
            .w2 = {const_cast<float*>(w2.data()), hidden, width, false}};
  }
};

inline double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
inline double gelu_slope(double x) {
  return 0.5 * (1 + std::erf(x / std::sqrt(2.0))) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0));
}

struct PlainGradients {
  Doubles out, tokens, gate, w1, b1, w2, b2;
};

// The result, and the gradients of the sum of grad * result.
inline PlainGradients plain_experts(const PlainExperts& p, const Floats& grad) {
  const auto zeros = [](const Floats& like) { return Doubles(like.size()); };
  PlainGradients g{zeros(p.x), zeros(p.x), zeros(p.gate), zeros(p.w1), zeros(p.b1), zeros(p.w2), zeros(p.b2)};
  const auto D = static_cast<size_t>(p.width), F = static_cast<size_t>(p.hidden);
  for (size_t e = 0; e < static_cast<size_t>(p.experts); ++e)
    for (auto r = static_cast<size_t>(p.offset[e]); r < static_cast<size_t>(p.offset[e + 1]); ++r) {
      const auto j = static_cast<size_t>(p.row_token[r]);
      const double gate = p.gate[r];
      Doubles hidden(F), slope(F), hidden_grad(F);
      for (size_t f = 0; f < F; ++f) {
        double sum = p.b1[e * F + f];
        for (size_t d = 0; d < D; ++d) sum += double{p.x[j * D + d]} * p.w1[(e * D + d) * F + f];
        hidden[f] = gelu(sum), slope[f] = gelu_slope(sum);
      }
      for (size_t d = 0; d < D; ++d) {
        double y = p.b2[e * D + d];
        const double upstream = grad[j * D + d];
        for (size_t f = 0; f < F; ++f) {
          y += hidden[f] * p.w2[(e * F + f) * D + d];
          g.w2[(e * F + f) * D + d] += gate * upstream * hidden[f];
          hidden_grad[f] += gate * upstream * p.w2[(e * F + f) * D + d];
        }
        g.out[j * D + d] += gate * y, g.gate[r] += upstream * y, g.b2[e * D + d] += gate * upstream;
      }
      for (size_t f = 0; f < F; ++f) {
        const double through = hidden_grad[f] * slope[f];
        g.b1[e * F + f] += through;
        for (size_t d = 0; d < D; ++d) {
          g.w1[(e * D + d) * F + f] += through * p.x[j * D + d];
          g.tokens[j * D + d] += through * p.w1[(e * D + d) * F + f];
        }
      }
    }
  return g;
}

}  // namespace sparsight::testing
