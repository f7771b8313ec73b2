#include "sparsight/ops/expert_mlp.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <limits>

#include "sparsight/core/error.h"
#include "sparsight/ops/cpu/expert_mlp.h"
#include "sparsight/ops/ref/expert_mlp.h"
#include "tests/ops/expert_cases.h"
#include "tests/support/gradcheck.h"
#include "tests/support/layouts.h"
#include "tests/support/near.h"

namespace sparsight::expert_mlp_test {
namespace {

using test::as_double;
using test::at_each_level;
using test::Case;
using test::ragged_sizes;
using test::random_case;
using test::route;
using test::Sizes;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<at::Tensor> listed(const ExpertMlpGradients& g) {
  std::vector<at::Tensor> out;
  for (const at::Tensor& t : {g.tokens, g.gate, g.weights.w1, g.weights.b1, g.weights.w2, g.weights.b2})
    if (t.defined()) out.push_back(t);
  return out;
}

// The result, and all gradients, of `c` in fp32 on the kernels.
std::vector<at::Tensor> on_kernels(const Case& c, Activation activation, bool keep = true) {
  at::Tensor pre_activation;
  std::vector<at::Tensor> out{
      cpu::expert_mlp_forward(c.tokens, c.rows, c.weights, activation, keep ? &pre_activation : nullptr)};
  for (const at::Tensor& t :
       listed(cpu::expert_mlp_backward(c.upstream, c.tokens, c.rows, c.weights, activation, pre_activation, {})))
    out.push_back(t);
  return out;
}

// The same by the reference in fp64.
std::vector<at::Tensor> expected(const Case& c, Activation activation) {
  ExpertRows rows = c.rows;
  rows.gate = as_double(rows.gate);
  const ExpertMlpWeights w{as_double(c.weights.w1), as_double(c.weights.b1), as_double(c.weights.w2),
                           as_double(c.weights.b2)};
  std::vector<at::Tensor> out{ref::expert_mlp_forward(as_double(c.tokens), rows, w, activation, nullptr)};
  for (const at::Tensor& t :
       listed(ref::expert_mlp_backward(as_double(c.upstream), as_double(c.tokens), rows, w, activation, {}, {})))
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

}  // namespace

TEST(ExpertMlp, AgreesWithTheReferenceAtEveryLevelAndShape) {
  at_each_level([](const std::string& level) {
    uint64_t seed = 1;
    for (const Sizes& s : ragged_sizes())
      for (const bool bias : {true, false}) {
        const auto activation = static_cast<Activation>(seed % activation_names().size());
        const Case c = random_case(s, seed++, torch::kFloat, bias);
        const auto want = expected(c, activation);
        const std::string what = cat(level, ", case ", seed - 1);
        expect_close(on_kernels(c, activation), want, what);
        expect_close(on_kernels(c, activation, /*keep=*/false), want, what + ", recomputed");
      }
  });
}

// A dense MLP is one expert with the weights of two torch.nn.Linear, [out,in], and rows in place without gates.
TEST(ExpertMlp, WeightsMayBeTransposedAndRowsInPlace) {
  at_each_level([](const std::string& level) {
    uint64_t seed = 40;
    for (const auto& [rows, width, hidden] :
         {std::tuple{1, 5, 3}, {20, 33, 70}, {50, 384, 1536}, {300, 40, 900}, {5000, 17, 24}}) {
      Case c = random_case({rows, 1, 1, width, hidden}, seed++);
      c.upstream = c.upstream * 0.1;
      c.rows = rows_in_place(c.tokens, torch::tensor({int64_t{0}, int64_t{rows}}));
      const auto turned = [](const at::Tensor& w) { return w.mT().contiguous().mT(); };
      c.weights.w1 = turned(c.weights.w1);
      c.weights.w2 = turned(c.weights.w2);
      for (const bool keep : {true, false}) {
        at::Tensor pre_activation;
        std::vector<at::Tensor> got{
            cpu::expert_mlp_forward(c.tokens, c.rows, c.weights, Activation::gelu, keep ? &pre_activation : nullptr)};
        const ExpertMlpGradients gradients = cpu::expert_mlp_backward(
            c.upstream, c.tokens, c.rows, c.weights, Activation::gelu, pre_activation, {true, false, true});
        EXPECT_EQ(gradients.weights.w1.strides(), c.weights.w1.strides());
        for (const at::Tensor& t : listed(gradients)) got.push_back(t);
        ExpertRows wide = c.rows;
        const ExpertMlpWeights w{as_double(c.weights.w1), as_double(c.weights.b1), as_double(c.weights.w2),
                                 as_double(c.weights.b2)};
        std::vector<at::Tensor> want{ref::expert_mlp_forward(as_double(c.tokens), wide, w, Activation::gelu, nullptr)};
        for (const at::Tensor& t : listed(ref::expert_mlp_backward(as_double(c.upstream), as_double(c.tokens), wide, w,
                                                                   Activation::gelu, {}, {true, false, true})))
          want.push_back(t);
        expect_close(got, want, cat(level, ", ", rows, " rows"));
      }
    }
  });
}

// The gradient of the tokens alone, from the slope of the activation that the forward pass kept.
TEST(ExpertMlp, KeptSlopesAreEnoughForTheGradientOfTheTokens) {
  constexpr ExpertMlpNeeds kTokensOnly{true, false, false};
  at_each_level([&](const std::string& level) {
    for (const int64_t rows : {1, 50, 300})
      for (const Activation activation :
           {Activation::gelu, Activation::gelu_tanh, Activation::relu, Activation::silu}) {
        Case c = random_case({rows, 1, 1, 40, 900}, 70 + static_cast<uint64_t>(rows));
        c.rows = rows_in_place(c.tokens, torch::tensor({int64_t{0}, rows}));
        if (rows > 50) c.rows.dropout = dropout_mask({rows, 900, torch::arange(rows)}, 0.7, RandomStream(1, "x"));
        at::Tensor slope;
        std::vector<at::Tensor> got{
            cpu::expert_mlp_forward(c.tokens, c.rows, c.weights, activation, &slope, {}, KeptHidden::slope)};
        got.push_back(cpu::expert_mlp_backward(c.upstream, c.tokens, c.rows, c.weights, activation, slope, kTokensOnly,
                                               KeptHidden::slope)
                          .tokens);
        const ExpertMlpWeights w{as_double(c.weights.w1), as_double(c.weights.b1), as_double(c.weights.w2),
                                 as_double(c.weights.b2)};
        const at::Tensor tokens = as_double(c.tokens);
        expect_close(
            got,
            {ref::expert_mlp_forward(tokens, c.rows, w, activation, nullptr),
             ref::expert_mlp_backward(as_double(c.upstream), tokens, c.rows, w, activation, {}, kTokensOnly).tokens},
            cat(level, ", ", rows, " rows"));
        EXPECT_EQ(sparsight::testing::error_text([&] {
                    cpu::expert_mlp_backward(c.upstream, c.tokens, c.rows, c.weights, activation, slope, {},
                                             KeptHidden::slope);
                  }),
                  "the slope of the hidden layer is not enough for gates, nor for the gradients of weights");
      }
  });
}

// Without a hidden layer a token gets the output's biases of its experts, times its gates.
TEST(ExpertMlp, WidthsMayBeZero) {
  at_each_level([](const std::string& level) {
    for (const Sizes& s :
         {Sizes{7, 3, 2, 6, 0}, {7, 3, 2, 0, 6}, {7, 3, 2, 0, 0}, {300, 2, 1, 6, 0}, {300, 2, 1, 0, 6}})
      for (const bool bias : {true, false}) {
        const Case c = random_case(s, 5, torch::kFloat, bias);
        at::Tensor pre_activation;
        std::vector<at::Tensor> got{expert_mlp_forward(c.tokens, c.rows, c.weights, Activation::gelu, &pre_activation)};
        const std::vector<at::Tensor> grads =
            listed(expert_mlp_backward(c.upstream, c.tokens, c.rows, c.weights, Activation::gelu, pre_activation, {}));
        got.insert(got.end(), grads.begin(), grads.end());
        expect_close(got, expected(c, Activation::gelu), level);
        if (s.hidden > 0 || !bias) continue;
        const at::Tensor expert = torch::repeat_interleave(torch::arange(s.experts), c.rows.offsets.diff());
        const at::Tensor gated = c.weights.b2.index_select(0, expert) * c.rows.gate.unsqueeze(1);
        const at::Tensor want = torch::zeros_like(c.tokens).index_add_(0, c.rows.map.row_token, gated);
        EXPECT_TRUE(torch::allclose(got[0], want, 1e-5, 1e-6)) << level;
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

// The gradients of an expert's weights are computed with those of its rows if one task has all of them, else later.
TEST(ExpertMlp, ExpertsWithManyFewAndNoRowsMeetInOneCall) {
  at_each_level([](const std::string& level) {
    Case c = random_case({330, 4, 1, 400, 900}, 3);
    c.upstream = c.upstream * 0.1;  // sums over hundreds of rows stay of order 1, which the bound is for
    at::Tensor expert = torch::full({330, 1}, 2, torch::kLong);
    expert.narrow(0, 20, 10).fill_(0);
    expert.narrow(0, 320, 1).fill_(3);
    c.rows = route(expert, torch::ones({330}, torch::kBool), 4, 5, torch::kFloat);
    for (const bool keep : {true, false})
      expect_close(on_kernels(c, Activation::gelu, keep), expected(c, Activation::gelu), level);
  });
}

TEST(ExpertMlp, FrozenWeightsChangeNoBitOfTheOtherGradients) {
  at_each_level([](const std::string& level) {
    Case c = random_case({330, 4, 1, 40, 900}, 3);
    c.rows = route(torch::arange(330, torch::kLong).unsqueeze(1).floor_divide(200), torch::ones({330}, torch::kBool), 4,
                   5, torch::kFloat);
    for (const bool keep : {true, false}) {
      const auto gradients = [&](bool frozen) {
        const auto leaf = [&](const at::Tensor& x, bool learns) { return x.detach().clone().requires_grad_(learns); };
        const ExpertMlpWeights w{leaf(c.weights.w1, !frozen), leaf(c.weights.b1, !frozen), leaf(c.weights.w2, !frozen),
                                 leaf(c.weights.b2, !frozen)};
        const at::Tensor tokens = leaf(c.tokens, true);
        ExpertRows rows = c.rows;
        rows.gate = leaf(c.rows.gate, true);
        expert_mlp(tokens, rows, w, {.recompute = !keep}).backward(c.upstream);
        EXPECT_EQ(w.w1.grad().defined(), !frozen) << level;
        EXPECT_EQ(w.b2.grad().defined(), !frozen) << level;
        return std::pair{tokens.grad(), rows.gate.grad()};
      };
      const auto learning = gradients(false), frozen = gradients(true);
      EXPECT_TRUE(torch::equal(learning.first, frozen.first)) << level;
      EXPECT_TRUE(torch::equal(learning.second, frozen.second)) << level;
    }
  });
}

TEST(ExpertMlp, OneWeightThatLearnsHasItsGradient) {
  const Case c = random_case({50, 4, 2, 16, 20}, 3);
  for (const bool bias : {true, false}) {
    ExpertMlpWeights w = c.weights;
    if (!bias) w.b1 = w.b2 = at::Tensor();
    w.w2 = w.w2.detach().clone().requires_grad_(true);
    expert_mlp(c.tokens, c.rows, w, {}).backward(c.upstream);
    const at::Tensor want =
        cpu::expert_mlp_backward(c.upstream, c.tokens, c.rows, w, Activation::gelu, {}, {}).weights.w2;
    EXPECT_TRUE(torch::equal(w.w2.grad(), want)) << bias;
  }
}

TEST(ExpertMlp, HasTheSameBitsForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  at_each_level([](const std::string& level) {
    for (const Sizes& s : {Sizes{300, 5, 2, 64, 800}, Sizes{7, 3, 2, 384, 1536}, Sizes{2000, 80, 1, 16, 24},
                           Sizes{150, 40, 2, 24, 900}, Sizes{500, 1, 1, 400, 450}}) {
      const Case c = random_case(s, 11);
      at::set_num_threads(1);
      const auto one = on_kernels(c, Activation::gelu);
      for (const int n : {2, 4, 16}) {
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
    const auto loss = [&] {
      return (expert_mlp(c.tokens, c.rows, w, {Activation::gelu, recompute}) * c.upstream).sum();
    };
    EXPECT_LT(test::gradient_error(loss, {c.tokens, c.rows.gate, w.w1, w.b1, w.w2, w.b2}), 1e-7);
  }
}

TEST(ExpertMlp, BiasesAndGatesAreOptional) {
  const Case c = random_case({6, 3, 1, 3, 5}, 7, torch::kDouble, /*bias=*/false);
  const ExpertRows rows{c.rows.map, c.rows.offsets, {}};
  const auto loss = [&] { return (expert_mlp(c.tokens, rows, c.weights, {}) * c.upstream).sum(); };
  EXPECT_LT(test::gradient_error(loss, {c.tokens, c.weights.w1, c.weights.w2}), 1e-7);
}

TEST(ExpertMlp, RecomputingGivesTheSameGradients) {
  const Case c = random_case({50, 4, 2, 48, 100}, 8);
  std::vector<at::Tensor> grads[2];
  for (const bool recompute : {false, true}) {
    std::vector<at::Tensor> leaves{c.tokens, c.rows.gate, c.weights.w1, c.weights.b1, c.weights.w2, c.weights.b2};
    for (at::Tensor& leaf : leaves) leaf = leaf.detach().requires_grad_(true);
    const ExpertRows rows{c.rows.map, c.rows.offsets, leaves[1]};
    (expert_mlp(leaves[0], rows, {leaves[2], leaves[3], leaves[4], leaves[5]}, {Activation::gelu, recompute}) *
     c.upstream)
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
  const ExpertMlpWeights& w = c.weights;
  const auto result = [&](const auto& layout, const auto& of_weights) {
    return expert_mlp(layout(c.tokens), c.rows, {of_weights(w.w1), layout(w.b1), of_weights(w.w2), layout(w.b2)}, {});
  };
  EXPECT_TRUE(torch::equal(result(test::misaligned, test::misaligned), want));
  EXPECT_TRUE(torch::equal(result(test::strided, test::misaligned), want));
  // Transposed weights are read as they are, in another order of sums.
  EXPECT_TRUE(test::near(result(test::strided, test::strided), want, 1e-5));
}

// Tokens and weights in bf16 or fp16 with the router's fp32 gates: the result and each gradient has the type of what it
// belongs to, and is that of the same numbers in fp64 up to a few units of the last of 8 or 11 bits.
TEST(ExpertMlp, TokensInFewerBitsWithFp32GatesAgreeWithTheReference) {
  for (const auto& [type, unit] :
       {std::pair{torch::kBFloat16, std::ldexp(1.0, -8)}, {torch::kHalf, std::ldexp(1.0, -11)}}) {
    Case c = random_case({40, 3, 2, 24, 50}, 10, type);
    c.rows.gate = test::random_tensor(c.rows.gate.sizes(), 3, torch::kFloat).abs();
    const std::vector<at::Tensor> want = expected(c, Activation::gelu);
    const ExpertMlpWeights& w = c.weights;
    std::vector<at::Tensor> got, leaves{c.tokens, c.rows.gate, w.w1, w.b1, w.w2, w.b2};
    for (at::Tensor& leaf : leaves) leaf = leaf.detach().clone().requires_grad_(true);
    const at::Tensor y = expert_mlp(leaves[0], {c.rows.map, c.rows.offsets, leaves[1]},
                                    {leaves[2], leaves[3], leaves[4], leaves[5]}, {});
    (y * c.upstream).sum().backward();
    got.push_back(y.detach());
    for (const at::Tensor& leaf : leaves) {
      EXPECT_EQ(leaf.grad().scalar_type(), leaf.scalar_type());
      got.push_back(leaf.grad());
    }
    EXPECT_EQ(y.scalar_type(), type);
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_TRUE(test::near(got[i], want[i], 4 * unit * want[i].abs().max().item<double>())) << type << " " << i;
  }
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

}  // namespace sparsight::expert_mlp_test
