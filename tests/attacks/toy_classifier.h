// The worked example of attacks: a smooth mixture of two experts on four pixels, four classes, in float64:
// S[e][d] = cos(1+4e+d); A[e][c][d] = sin(1+5e+2c+3d); B[e][c] = cos(2+3e+c); F_ec(x) = 2 sin(6 sum_d A[e][c][d] x_d +
// B[e][c]); logits = sum_e softmax(S x)_e F_e. The image is (0.3, 0.6, 0.5, 0.2), its class 1. The expected values were
// computed independently of this library.
#pragma once

#include <cmath>
#include <vector>

#include <torch/types.h>

#include "sparsight/attacks/attack_batch.h"
#include "sparsight/attacks/attacked_model.h"

namespace sparsight::test {

struct ToyWeights {
  at::Tensor router = torch::empty({2, 4}, torch::kDouble);     // S [E,D]
  at::Tensor expert = torch::empty({2, 4, 4}, torch::kDouble);  // A [E,C,D]
  at::Tensor phase = torch::empty({2, 4}, torch::kDouble);      // B [E,C]

  ToyWeights() {
    for (int e = 0; e < 2; ++e)
      for (int c = 0; c < 4; ++c) {
        router[e][c] = std::cos(1 + 4 * e + c);
        phase[e][c] = std::cos(2 + 3 * e + c);
        for (int d = 0; d < 4; ++d) expert[e][c][d] = std::sin(1 + 5 * e + 2 * c + 3 * d);
      }
  }
};

// x: [B,4] -> [B,4].
inline at::Tensor toy_logits(const at::Tensor& x) {
  static const ToyWeights weights;
  const at::Tensor p = x.matmul(weights.router.t()).softmax(1);  // [B,E]
  const at::Tensor f = 2 * (6 * torch::einsum("ecd,bd->bec", {weights.expert, x}) + weights.phase).sin();
  return torch::einsum("be,bec->bc", {p, f});
}

inline AttackedFunction toy_model() { return AttackedFunction(toy_logits); }

inline at::Tensor row(const std::vector<double>& values) { return torch::tensor(values, torch::kDouble).unsqueeze(0); }

inline AttackBatch toy_batch() { return {row({.3, .6, .5, .2}), {torch::tensor({1}, torch::kLong)}}; }

// Images at random places, with the classes that the model gives them, but for every fifth, which is misclassified.
inline AttackBatch toy_images(int64_t count) {
  at::Tensor pixels = torch::empty({count, 4}, torch::kDouble);
  for (int64_t i = 0; i < 4 * count; ++i) {
    const auto n = static_cast<double>(i);
    pixels.view(-1)[i] = 0.5 + 0.45 * std::sin(0.37 * n * n + n);
  }
  at::Tensor labels = toy_logits(pixels).argmax(1);
  for (int64_t i = 4; i < count; i += 5) labels[i] = (labels[i] + 1) % 4;
  return {pixels, {labels}};
}

inline double toy_cross_entropy(const at::Tensor& x) {
  return attack_loss::cross_entropy(toy_logits(x), toy_batch().labels).item<double>();
}

}  // namespace sparsight::test
