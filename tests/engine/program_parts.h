// Parts of small programs, with weights at random.
#pragma once

#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "sparsight/engine/conv_experts.h"
#include "sparsight/engine/routers/logits.h"
#include "sparsight/engine/steps/blocks.h"
#include "sparsight/kernels/threads/own_threads.h"

namespace sparsight::engine_test {

constexpr int64_t kWidth = 16, kExperts = 4, kHidden = 24, kClasses = 5;

// Different numbers at each call, the same in each run of the tests.
class Numbers {
 public:
  std::vector<float> operator()(int64_t count, float scale = 0.3F) {
    std::normal_distribution<float> normal(0, scale);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = normal(engine_);
    return values;
  }
  std::vector<float> around(float mean, int64_t count) {
    std::vector<float> values = (*this)(count, 0.2F);
    for (float& value : values) value += mean;
    return values;
  }

 private:
  std::mt19937_64 engine_{11};
};

struct Parts {
  WeightType type;
  Numbers numbers = {};

  cpu::PackedLinear linear(int64_t inputs, int64_t outputs) {
    return {numbers(inputs * outputs).data(), numbers(outputs).data(), inputs, outputs, type};
  }
  engine::Norm norm(int64_t width = kWidth) { return {numbers.around(1, width), numbers(width), 1e-5F}; }
  engine::BlockStep block(engine::Value from, engine::Value to, std::optional<Activation> activation,
                          bool qk_norm = false) {
    engine::TransformerBlockWeights weights{norm(), linear(kWidth, 3 * kWidth), linear(kWidth, kWidth), 2,
                                            std::nullopt};
    if (activation) weights.mlp = engine::Mlp{norm(), linear(kWidth, kHidden), linear(kHidden, kWidth), *activation};
    if (qk_norm) weights.qk_norm = engine::QkNorm{norm(kWidth / 2), norm(kWidth / 2)};
    return {from, to, engine::TransformerBlock(std::move(weights))};
  }
  engine::LinearMap map(int64_t inputs, int64_t outputs, bool transposed = true) {
    return {numbers(inputs * outputs, 0.7F), inputs, outputs, transposed, numbers(outputs)};
  }
  engine::RouterLogits logits(int64_t experts = kExperts) { return engine::RouterLogits(map(kWidth, experts)); }
  engine::ExpertLinear expert_linear(int64_t experts, int64_t inputs, int64_t outputs, bool bias = true) {
    return {experts, inputs, outputs, numbers(experts * inputs * outputs),
            bias ? numbers(experts * outputs) : std::vector<float>{}};
  }
  std::unique_ptr<engine::Experts> mlps(int64_t experts = kExperts, Activation activation = Activation::gelu,
                                        bool bias = true) {
    cpu::OwnThreads threads(1);
    const std::vector<float> w1 = numbers(experts * kWidth * kHidden), w2 = numbers(experts * kWidth * kHidden),
                             b1 = numbers(experts * kHidden), b2 = numbers(experts * kWidth);
    return std::make_unique<engine::MlpExperts>(
        cpu::PackedExperts(threads, {experts, kWidth, kHidden}, w1.data(), bias ? b1.data() : nullptr, w2.data(),
                           bias ? b2.data() : nullptr, type),
        activation);
  }
  std::unique_ptr<engine::Experts> layers(int64_t inputs, int64_t outputs, bool gated) {
    std::vector<engine::ExpertLinear> all;
    all.push_back(expert_linear(kExperts, inputs, gated ? 2 * kHidden : kHidden));
    all.push_back(expert_linear(kExperts, kHidden, outputs, false));
    return std::make_unique<engine::LayeredExperts>(std::move(all), Activation::silu, gated);
  }
  std::unique_ptr<engine::Experts> patch_convs(bool mean, int64_t experts = kExperts) {
    const engine::PatchWindows windows{.channels = 4, .side = 2, .kernel = 2, .padding = 1, .stride = 1};
    return std::make_unique<engine::PatchConvExperts>(windows, expert_linear(experts, windows.taps(), 6),
                                                      Activation::gelu_tanh, mean, expert_linear(experts, 6, kWidth));
  }
  std::unique_ptr<engine::Experts> norm_convs(bool gates_input) {
    const engine::PatchWindows windows{.channels = 4, .side = 2, .kernel = 3, .padding = 1, .stride = 1};
    return std::make_unique<engine::NormConvExperts>(windows, numbers.around(1, kExperts * 4), numbers(kExperts * 4),
                                                     Activation::relu, expert_linear(kExperts, windows.taps(), 1),
                                                     gates_input);
  }
  engine::ConvStep conv(int64_t inputs, int64_t outputs, int64_t kernel, int64_t stride = 1) {
    engine::ConvStep step;
    step.conv = cpu::PackedConv(numbers(inputs * outputs * kernel * kernel).data(), numbers(outputs).data(), inputs,
                                outputs, kernel, type);
    step.kernel = kernel, step.stride = stride;
    return step;
  }
  std::unique_ptr<engine::Experts> blocks(engine::ConvChain::Map map, int64_t experts = kExperts) {
    std::vector<engine::ConvChain> all;
    for (int64_t e = 0; e < experts; ++e) {
      std::vector<engine::ConvStep> steps;
      steps.push_back(conv(map.channels, map.channels, 3));
      all.emplace_back(std::move(steps));
    }
    return std::make_unique<engine::BlockExperts>(std::move(all), map);
  }
};

}  // namespace sparsight::engine_test
