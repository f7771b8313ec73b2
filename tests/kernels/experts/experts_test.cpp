// The kernels of experts against plain loops in fp64, at every level and on several threads.
#include <algorithm>
#include <cstring>
#include <memory>

#include <gtest/gtest.h>

#include "sparsight/kernels/experts/grouped_linear.h"
#include "sparsight/kernels/experts/packed_experts.h"
#include "sparsight/kernels/experts/packed_tiles.h"
#include "sparsight/kernels/pack/pack_experts.h"
#include "tests/kernels/every_level.h"
#include "tests/kernels/experts/plain_experts.h"

namespace sparsight::experts_kernel_test {
namespace {

using testing::Doubles;
using testing::Floats;
using testing::PlainExperts;
using testing::PlainGradients;

// The largest difference is at most `tolerance` of the largest number.
void expect_close(const Floats& got, const Doubles& want, double tolerance, const char* what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double difference = 0, largest = 0;
  for (size_t i = 0; i < got.size(); ++i)
    difference = std::max(difference, std::abs(got[i] - want[i])), largest = std::max(largest, std::abs(want[i]));
  EXPECT_LE(difference, tolerance * largest) << what;
}

Floats forward(cpu::Threads& threads, const PlainExperts& p, const cpu::StoredExperts& experts, float* kept = nullptr) {
  Floats out(p.x.size());
  cpu::expert_mlp_forward(threads, p.numbers(), experts,
                          {.tokens = p.x.data(), .residual = {}, .kept = kept, .out = out.data()});
  return out;
}

// Small M, several tasks of an expert, several chunks of the hidden layer, experts without rows.
std::vector<PlainExperts> cases() {
  return {{3, 40, 50, 30, 2}, {2, 33, 17, 1, 1}, {4, 24, 400, 600, 1}, {8, 400, 20, 5, 1}};
}

// Memory as aligned as the arena's.
struct Packed {
  cpu::PackedLayout layout;
  std::vector<uint8_t> memory;
  void* data() { return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64); }
};

uint16_t round_to_bf16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

Packed packed(cpu::Threads& threads, const PlainExperts& p, const cpu::PackedLayout& layout) {
  std::vector<uint16_t> half1(p.w1.size()), half2(p.w2.size());
  std::ranges::transform(p.w1, half1.begin(), round_to_bf16);
  std::ranges::transform(p.w2, half2.begin(), round_to_bf16);
  const bool fp32 = layout.type == WeightType::fp32;
  Packed out{layout, std::vector<uint8_t>(static_cast<size_t>(p.experts * layout.expert_bytes() + 64))};
  cpu::pack_experts(threads, layout, p.experts, fp32 ? static_cast<const void*>(p.w1.data()) : half1.data(),
                    fp32 ? static_cast<const void*>(p.w2.data()) : half2.data(), out.data());
  return out;
}

cpu::StoredExperts stored(const PlainExperts& p, Packed& packed) {
  cpu::StoredExperts experts = p.stored();
  experts.w1 = {}, experts.w2 = {};
  experts.panels = packed.data(), experts.layout = packed.layout;
  return experts;
}

}  // namespace

TEST(ExpertsKernel, ForwardAndBackward) {
  for (const PlainExperts& p : cases()) {
    SCOPED_TRACE(std::to_string(p.experts) + " experts, " + std::to_string(p.tokens) + " tokens");
    const Floats grad = testing::random_floats(p.tokens * p.width, 7);
    const PlainGradients want = testing::plain_experts(p, grad);
    std::vector<Floats> bits;
    testing::at_every_level([&](cpu::Threads& threads) {
      Floats kept(static_cast<size_t>(p.rows() * p.hidden));
      const Floats out = forward(threads, p, p.stored(), kept.data());
      expect_close(out, want.out, 1e-5, "result");
      bits.push_back(out);
      for (const float* from : {static_cast<const float*>(kept.data()), static_cast<const float*>(nullptr)}) {
        Floats tokens(p.x.size()), gate(p.gate.size()), w1(p.w1.size()), b1(p.b1.size()), w2(p.w2.size()),
            b2(p.b2.size());
        cpu::expert_mlp_backward(threads, p.numbers(), p.stored(),
                                 {.grad = grad.data(),
                                  .tokens = p.x.data(),
                                  .kept = from,
                                  .tokens_grad = tokens.data(),
                                  .gate_grad = gate.data(),
                                  .w1_grad = {w1.data(), p.width, p.hidden, false},
                                  .w2_grad = {w2.data(), p.hidden, p.width, false},
                                  .b1_grad = b1.data(),
                                  .b2_grad = b2.data()});
        expect_close(tokens, want.tokens, 1e-5, "tokens");
        expect_close(gate, want.gate, 1e-5, "gate");
        expect_close(w1, want.w1, 1e-5, "w1");
        expect_close(b1, want.b1, 1e-5, "b1");
        expect_close(w2, want.w2, 1e-5, "w2");
        expect_close(b2, want.b2, 1e-5, "b2");
      }
    });
    for (size_t level = 0; level < bits.size(); level += 2) EXPECT_EQ(bits[level], bits[level + 1]) << "threads";
  }
}

TEST(ExpertsKernel, PackedWeights) {
  for (const PlainExperts& p : cases()) {
    const PlainGradients want = testing::plain_experts(p, Floats(p.x.size()));
    testing::at_every_level([&](cpu::Threads& threads) {
      Packed panels = packed(threads, p, cpu::panel_layout(WeightType::fp32, p.width, p.hidden));
      expect_close(forward(threads, p, stored(p, panels)), want.out, 1e-5, "fp32");
      Packed half = packed(threads, p, cpu::panel_layout(WeightType::bf16, p.width, p.hidden));
      expect_close(forward(threads, p, stored(p, half)), want.out, 2e-2, "bf16");
#if defined(__x86_64__)
      if (!cpu::kernels().has_tiles) return;
      Packed tiles = packed(threads, p, cpu::tile_layout(p.width, p.hidden));
      Floats out(p.x.size());
      cpu::packed_tiles_forward(threads, p.numbers(), stored(p, tiles), p.x.data(), Activation::gelu, nullptr,
                                out.data());
      expect_close(out, want.out, 2e-2, "tiles");
#endif
    });
  }
}

// Rows, the hidden layer and both matrices are rounded by up to 1/254 of their largest number.
TEST(ExpertsKernel, WeightsInInt8) {
  for (const PlainExperts& p : cases()) {
    const PlainGradients want = testing::plain_experts(p, Floats(p.x.size()));
    testing::at_every_level([&](cpu::Threads& threads) {
      const cpu::PackedExperts packed(threads, p.stored().shape, p.w1.data(), p.b1.data(), p.w2.data(), p.b2.data(),
                                      WeightType::int8);
      Floats out(p.x.size());
      packed.run(threads, p.numbers(), p.x.data(), Activation::gelu, nullptr, out.data());
      expect_close(out, want.out, 2e-2, "int8");
    });
  }
}

TEST(PackExperts, UnpacksWhatItPacked) {
  cpu::OwnThreads threads(2);
  for (const PlainExperts& p : cases()) {
    Packed panels = packed(threads, p, cpu::panel_layout(WeightType::fp32, p.width, p.hidden));
    Floats w1(p.w1.size()), w2(p.w2.size());
    cpu::unpack_experts(threads, panels.layout, p.experts, panels.data(), w1.data(), w2.data());
    EXPECT_EQ(w1, p.w1);
    EXPECT_EQ(w2, p.w2);
  }
}

TEST(GroupedLinearKernel, ForwardAndSums) {
  const PlainExperts p(3, 40, 50, 30, 2);  // W1 alone, on rows in the order of the experts
  const Floats rows = testing::random_floats(p.rows() * p.width, 8),
               grad = testing::random_floats(p.rows() * p.hidden, 9);
  const auto D = static_cast<size_t>(p.width), F = static_cast<size_t>(p.hidden);
  Doubles out(grad.size()), weight(p.w1.size()), bias(p.b1.size());
  for (size_t e = 0; e < 3; ++e)
    for (auto r = static_cast<size_t>(p.offset[e]); r < static_cast<size_t>(p.offset[e + 1]); ++r)
      for (size_t f = 0; f < F; ++f) {
        out[r * F + f] = p.b1[e * F + f];
        bias[e * F + f] += grad[r * F + f];
        for (size_t d = 0; d < D; ++d) {
          out[r * F + f] += double{rows[r * D + d]} * p.w1[(e * D + d) * F + f];
          weight[(e * D + d) * F + f] += double{rows[r * D + d]} * grad[r * F + f];
        }
      }
  testing::at_every_level([&](cpu::Threads& threads) {
    Floats got(grad.size()), got_weight(p.w1.size()), got_bias(p.b1.size());
    cpu::grouped_linear(threads, {p.offset.data(), 3, p.stored().w1, p.b1.data()}, rows.data(), {.width = p.hidden},
                        got.data());
    expect_close(got, out, 1e-5, "result");
    cpu::grouped_linear_sums(threads, {.experts = 3,
                                       .inputs = p.width,
                                       .outputs = p.hidden,
                                       .offset = p.offset.data(),
                                       .rows = rows.data(),
                                       .grad = grad.data(),
                                       .weight = got_weight.data(),
                                       .bias = got_bias.data()});
    expect_close(got_weight, weight, 1e-5, "weight");
    expect_close(got_bias, bias, 1e-5, "bias");
  });
}

}  // namespace sparsight::experts_kernel_test
