// What a forward pass does. Training and evaluation are two presets; any other combination takes one line: frozen batch
// norm, router noise without dropout, auxiliary losses in evaluation. It is passed along with the model's input, and
// nothing in nn/, moe/ or models/ reads torch's is_training().
#pragma once

namespace sparsight {

struct ForwardMode {
  bool noise = false;             // router noise and jitter
  bool dropout = false;           // of activations, in blocks and in experts
  bool drop_path = false;         // stochastic depth
  bool batch_statistics = false;  // batch norm uses the batch's statistics and updates the running averages
  bool capacity = false;          // [capacity] factor; else eval_factor
  bool choices = false;           // choose as in training (k, balanced assignments); else as in evaluation (eval_k)
  bool losses = false;            // compute the auxiliary losses

  static constexpr ForwardMode training() { return {true, true, true, true, true, true, true}; }
  static constexpr ForwardMode evaluation() { return {}; }

  bool operator==(const ForwardMode&) const = default;
};

}  // namespace sparsight
