#include "sparsight/ops/expert_mlp.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <limits>

#include "sparsight/core/error.h"
#include "sparsight/core/random.h"
#include "sparsight/ops/cpu/expert_mlp.h"
#include "sparsight/ops/cpu/isa.h"
#include "sparsight/ops/held_experts.h"
#include "sparsight/ops/ref/expert_mlp.h"
#include "sparsight/ops/sort_by_expert.h"
#include "tests/support/gradcheck.h"
#include "tests/support/random_tensor.h"

namespace sparsight::expert_mlp_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Case {
  at::Tensor tokens, pull;
  ExpertRows rows;
  ExpertMlpWeights weights;
};

ExpertRows route(const at::Tensor& expert, const at::Tensor& kept, int64_t experts, uint64_t seed,
                 at::ScalarType type) {
  const int64_t tokens = expert.size(0), k = expert.size(1);
  const at::Tensor token = torch::arange(tokens, torch::kLong).unsqueeze(1).expand({tokens, k}).reshape({-1});
  const ExpertGroups groups = sort_by_expert(expert.reshape({-1}), kept, experts);
  return {map_rows(token, groups.order, tokens), groups.offsets,
          test::random_tensor({groups.order.size(0)}, seed, type).abs()};
}

struct Sizes {
  int64_t tokens, experts, k, width, hidden;
};

// Tokens choose experts at random, unevenly, and about one assignment in six is dropped. Weights of order
// 1/sqrt(inputs).
Case random_case(const Sizes& s, uint64_t seed, at::ScalarType type = torch::kFloat, bool bias = true) {
  Case c;
  const auto wide = [&](at::IntArrayRef sizes, uint64_t n, double scale) {
    return test::random_tensor(sizes, seed * 100 + n, type) * scale;
  };
  c.tokens = wide({s.tokens, s.width}, 1, 1);
  c.pull = wide({s.tokens, s.width}, 2, 1);
  const at::Tensor draw =
      test::random_tensor({s.tokens, s.k}, seed * 100 + 3).abs() * 0.6 * static_cast<double>(s.experts);
  const at::Tensor expert = draw.clamp(0, static_cast<double>(s.experts - 1)).to(torch::kLong);
  const at::Tensor kept = test::random_tensor({s.tokens * s.k}, seed * 100 + 4) > -1.0;
  c.rows = route(expert, kept, s.experts, seed * 100 + 5, type);
  c.weights = {wide({s.experts, s.width, s.hidden}, 6, 1 / std::sqrt(s.width)),
               bias ? wide({s.experts, s.hidden}, 7, 1) : at::Tensor(),
               wide({s.experts, s.hidden, s.width}, 8, 1 / std::sqrt(s.hidden)),
               bias ? wide({s.experts, s.width}, 9, 1) : at::Tensor()};
  return c;
}

std::vector<at::Tensor> listed(const ExpertMlpGradients& g) {
  std::vector<at::Tensor> out;
  for (const at::Tensor& t : {g.tokens, g.gate, g.weights.w1, g.weights.b1, g.weights.w2, g.weights.b2})
    if (t.defined()) out.push_back(t);
  return out;
}

// The result, and all gradients, of `c` in fp32 on the kernels.
std::vector<at::Tensor> on_kernels(const Case& c, Activation activation, bool keep = true) {
  at::Tensor before;
  std::vector<at::Tensor> out{
      cpu::expert_mlp_forward(c.tokens, c.rows, c.weights, activation, keep ? &before : nullptr)};
  for (const at::Tensor& t :
       listed(cpu::expert_mlp_backward(c.pull, c.tokens, c.rows, c.weights, activation, before, {})))
    out.push_back(t);
  return out;
}

at::Tensor as_double(const at::Tensor& x) { return x.defined() ? x.to(torch::kDouble) : x; }

// The same by the reference in fp64.
std::vector<at::Tensor> expected(const Case& c, Activation activation) {
  ExpertRows rows = c.rows;
  rows.gate = as_double(rows.gate);
  const ExpertMlpWeights w{as_double(c.weights.w1), as_double(c.weights.b1), as_double(c.weights.w2),
                           as_double(c.weights.b2)};
  std::vector<at::Tensor> out{ref::expert_mlp_forward(as_double(c.tokens), rows, w, activation, nullptr)};
  for (const at::Tensor& t :
       listed(ref::expert_mlp_backward(as_double(c.pull), as_double(c.tokens), rows, w, activation, {}, {})))
    out.push_back(t);
  return out;
}

void expect_close(const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].sizes(), want[i].sizes()) << what << ", tensor " << i;
    EXPECT_TRUE(torch::allclose(got[i].to(torch::kDouble), want[i], 2e-5, 5e-5)) << what << ", tensor " << i;
  }
}

// Runs `body` at each instruction-set level of this machine.
template <class Body>
void at_each_level(const Body& body) {
  for (const std::string& name : isa_names()) {
    set_isa(name);
    body(name);
  }
  set_isa("");
}

const std::vector<Sizes>& odd_sizes() {
  static const std::vector<Sizes> sizes{
      {1, 1, 1, 1, 1},       {5, 3, 2, 7, 33},     {40, 4, 1, 33, 7},    {64, 3, 2, 64, 96},  {9, 16, 2, 48, 500},
      {300, 2, 2, 20, 40},   {700, 1, 1, 17, 19},  {30, 2, 1, 400, 800}, {25, 5, 3, 385, 30}, {0, 4, 2, 8, 16},
      {17, 1, 1, 384, 1536}, {11, 1, 2, 96, 1153}, {500, 9, 2, 31, 65},  {2, 60, 2, 50, 70},  {13, 1, 1, 800, 12}};
  return sizes;
}

}  // namespace

TEST(ExpertMlp, AgreesWithTheReferenceAtEveryLevelAndShape) {
  at_each_level([](const std::string& level) {
    uint64_t seed = 1;
    for (const Sizes& s : odd_sizes())
      for (const bool bias : {true, false}) {
        const auto activation = static_cast<Activation>(seed % 3);
        const Case c = random_case(s, seed++, torch::kFloat, bias);
        const auto want = expected(c, activation);
        const std::string what = cat(level, ", case ", seed - 1);
        expect_close(on_kernels(c, activation), want, what);
        expect_close(on_kernels(c, activation, /*keep=*/false), want, what + ", recomputed");
      }
  });
}

TEST(ExpertMlp, AllTokensMayGoToOneExpert) {
  at_each_level([](const std::string& level) {
    Case c = random_case({200, 6, 1, 40, 450}, 3);
    c.rows = route(torch::full({200, 1}, 4, torch::kLong), torch::ones({200}, torch::kBool), 6, 5, torch::kFloat);
    const auto got = on_kernels(c, Activation::gelu);
    expect_close(got, expected(c, Activation::gelu), level);
    EXPECT_TRUE(torch::equal(got[3][0], torch::zeros_like(got[3][0])));  // w1 of an expert without rows
  });
}

TEST(ExpertMlp, HasTheSameBitsForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  at_each_level([](const std::string& level) {
    for (const Sizes& s : {Sizes{300, 5, 2, 64, 800}, Sizes{7, 3, 2, 384, 1536}, Sizes{2000, 80, 1, 16, 24}}) {
      const Case c = random_case(s, 11);
      at::set_num_threads(1);
      const auto one = on_kernels(c, Activation::gelu);
      for (const int n : {2, 4}) {
        at::set_num_threads(n);
        const auto more = on_kernels(c, Activation::gelu);
        for (size_t i = 0; i < one.size(); ++i)
          EXPECT_TRUE(torch::equal(one[i], more[i])) << level << " " << n << " " << i;
      }
    }
  });
  at::set_num_threads(threads);
}

TEST(ExpertMlp, GradientsAgreeWithCentralDifferences) {
  for (const bool recompute : {false, true}) {
    const Case c = random_case({6, 3, 2, 3, 5}, 7, torch::kDouble);
    const ExpertMlpWeights& w = c.weights;
    const auto loss = [&] { return (expert_mlp(c.tokens, c.rows, w, {Activation::gelu, recompute}) * c.pull).sum(); };
    EXPECT_LT(test::gradient_error(loss, {c.tokens, c.rows.gate, w.w1, w.b1, w.w2, w.b2}), 1e-7);
  }
}

TEST(ExpertMlp, BiasesAndGatesAreOptional) {
  const Case c = random_case({6, 3, 1, 3, 5}, 7, torch::kDouble, /*bias=*/false);
  const ExpertRows rows{c.rows.map, c.rows.offsets, {}};
  const auto loss = [&] { return (expert_mlp(c.tokens, rows, c.weights, {}) * c.pull).sum(); };
  EXPECT_LT(test::gradient_error(loss, {c.tokens, c.weights.w1, c.weights.w2}), 1e-7);
}

TEST(ExpertMlp, RecomputingGivesTheSameGradients) {
  const Case c = random_case({50, 4, 2, 48, 100}, 8);
  std::vector<at::Tensor> grads[2];
  for (const bool recompute : {false, true}) {
    std::vector<at::Tensor> leaves{c.tokens, c.rows.gate, c.weights.w1, c.weights.b1, c.weights.w2, c.weights.b2};
    for (at::Tensor& leaf : leaves) leaf = leaf.detach().requires_grad_(true);
    const ExpertRows rows{c.rows.map, c.rows.offsets, leaves[1]};
    (expert_mlp(leaves[0], rows, {leaves[2], leaves[3], leaves[4], leaves[5]}, {Activation::gelu, recompute}) * c.pull)
        .sum()
        .backward();
    for (const at::Tensor& leaf : leaves) grads[recompute].push_back(leaf.grad());
  }
  for (size_t i = 0; i < grads[0].size(); ++i) EXPECT_TRUE(torch::equal(grads[0][i], grads[1][i])) << i;
}

TEST(ExpertMlp, NanAndInfinityStayWithTheirToken) {
  at_each_level([](const std::string& level) {
    Case c = random_case({40, 3, 2, 33, 70}, 9);
    const at::Tensor clean = cpu::expert_mlp_forward(c.tokens, c.rows, c.weights, Activation::gelu, nullptr);
    c.tokens[7][3] = kNan;
    c.tokens[20][5] = std::numeric_limits<float>::infinity();
    const at::Tensor out = cpu::expert_mlp_forward(c.tokens, c.rows, c.weights, Activation::gelu, nullptr);
    EXPECT_TRUE(out[7].isnan().all().item<bool>()) << level;
    for (int64_t j = 0; j < 40; ++j) EXPECT_TRUE(j == 7 || j == 20 || torch::equal(out[j], clean[j])) << level << j;
  });
}

TEST(ExpertMlp, StridedAndMisalignedInputsGiveTheSameResult) {
  const Case c = random_case({30, 3, 2, 24, 50}, 10);
  const at::Tensor want = expert_mlp(c.tokens, c.rows, c.weights, {});
  const auto shifted = [](const at::Tensor& x) {  // off by one float
    at::Tensor room = torch::empty({x.numel() + 1}, x.options());
    at::Tensor view = room.narrow(0, 1, x.numel()).view(x.sizes());
    view.copy_(x);
    return view;
  };
  const ExpertMlpWeights& w = c.weights;
  EXPECT_TRUE(torch::equal(
      want, expert_mlp(shifted(c.tokens), c.rows, {shifted(w.w1), shifted(w.b1), shifted(w.w2), shifted(w.b2)}, {})));
  const at::Tensor columns = c.tokens.t().contiguous().t();
  const ExpertMlpWeights strided{w.w1.transpose(1, 2).contiguous().transpose(1, 2), w.b1, w.w2, w.b2};
  EXPECT_TRUE(torch::equal(want, expert_mlp(columns, c.rows, strided, {})));
}

TEST(ExpertMlp, WrongArgumentsAreRefused) {
  const Case c = random_case({30, 3, 2, 24, 50}, 10);
  const ExpertMlpWeights& w = c.weights;
  EXPECT_THROW(expert_mlp(c.tokens.narrow(1, 0, 23), c.rows, w, {}), Error);
  EXPECT_THROW(expert_mlp(c.tokens.narrow(0, 0, 29), c.rows, w, {}), Error);
  EXPECT_THROW(expert_mlp(c.tokens, c.rows, {w.w1, w.b2, w.w2, w.b2}, {}), Error);
  EXPECT_THROW(expert_mlp(c.tokens, c.rows, {w.w1, w.b1, w.w1, w.b2}, {}), Error);
  EXPECT_THROW(expert_mlp(c.tokens.to(torch::kDouble), c.rows, w, {}), Error);
  EXPECT_THROW(expert_mlp(c.tokens, {c.rows.map, c.rows.offsets + 1, c.rows.gate}, w, {}), Error);
  EXPECT_THROW(expert_mlp(c.tokens, {c.rows.map, c.rows.offsets, c.rows.gate.narrow(0, 0, 3)}, w, {}), Error);
}

TEST(HeldExperts, ComputeWithTheWeightsTheyStandFor) {
  at_each_level([](const std::string& level) {
    uint64_t seed = 1;
    for (const Sizes& s : odd_sizes())
      for (const HeldType type : {HeldType::bf16, HeldType::int8}) {
        Case c = random_case(s, seed++, torch::kFloat, seed % 3 > 0);
        const HeldExperts held = hold_experts(c.weights, type);
        const at::Tensor got = held_experts(c.tokens, c.rows, held, Activation::gelu);
        c.weights = released_experts(held);
        expect_close({got}, {expected(c, Activation::gelu)[0]}, cat(level, ", case ", seed - 1));
      }
  });
}

// bf16 keeps 8 bits: a relative error of 2^-9 at most. int8: half a step of max|w| / 127 at most.
// bf16 keeps 8 significant bits: rounding to nearest errs by half a unit of the last one, 2^-8 of the value at most.
TEST(HeldExperts, RoundEachWeightByNoMoreThanTheirTypeDoes) {
  const Case c = random_case({1, 3, 1, 40, 60}, 5);
  const ExpertMlpWeights half = released_experts(hold_experts(c.weights, HeldType::bf16));
  EXPECT_TRUE(((half.w1 - c.weights.w1).abs() <= c.weights.w1.abs() * std::ldexp(1.0, -8)).all().item<bool>());
  const ExpertMlpWeights bytes = released_experts(hold_experts(c.weights, HeldType::int8));
  for (const auto& [got, want] : {std::pair{bytes.w1, c.weights.w1}, std::pair{bytes.w2, c.weights.w2}})
    EXPECT_TRUE(((got - want).abs() <= want.abs().amax(1, true) * (0.5001 / 127)).all().item<bool>());
  EXPECT_THROW(held_experts(c.tokens.to(torch::kDouble), c.rows, hold_experts(c.weights, HeldType::int8), {}), Error);
}

}  // namespace sparsight::expert_mlp_test
