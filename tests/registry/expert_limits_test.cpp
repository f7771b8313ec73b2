// Every registered kind of expert at the limits: no tokens, one expert, too many choices, tokens that
// are all the same, NaN and infinity, other types and memory layouts, other numbers of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "sparsight/core/error.h"
#include "sparsight/io/safetensors.h"
#include "sparsight/io/weights.h"
#include "tests/registry/limits.h"
#include "tests/support/errors.h"
#include "tests/support/layouts.h"

namespace sparsight::limits_test {

// A kind of expert, and settings that select other code paths.
struct ExpertForm {
  std::string name, kind;
  Json settings = Json::object();
};

void PrintTo(const ExpertForm& form, std::ostream* out) { *out << form.name; }

namespace {

std::vector<ExpertForm> expert_forms() {
  std::vector<ExpertForm> forms;
  for (const std::string& kind : expert_kinds().names()) forms.push_back({kind, kind});
  forms.push_back({"deep_mlp", "mlp", {{"depth", 3}}});
  forms.push_back({"unbiased_mlp", "mlp", {{"bias", false}}});
  forms.push_back({"recomputed_mlp", "mlp", {{"recompute", true}}});
  forms.push_back({"recomputed_swiglu", "swiglu", {{"recompute", true}, {"bias", true}}});
  forms.push_back({"pixel_conv", "conv", {{"channels", 2}, {"kernel", 1}}});
  forms.push_back({"padded_conv", "conv", {{"channels", 2}, {"kernel", 2}, {"padding", 1}, {"bias", true}}});
  forms.push_back({"pixel_norm_conv", "norm_conv", {{"kernel", 1}, {"gate", "output"}}});
  return forms;
}

}  // namespace

class ExpertsAtTheirLimits : public ::testing::TestWithParam<ExpertForm> {
 protected:
  std::shared_ptr<MoeLayer> layer(LayerForm form = {}, at::ScalarType type = torch::kFloat) const {
    form.kind = GetParam().kind;
    form.kind_settings = GetParam().settings;
    auto made = make_layer(form);
    made->to(type);
    return made;
  }
  std::shared_ptr<MoeLayer> layer(at::ScalarType type) const { return layer({}, type); }
  // Without relu, whose derivative jumps if rounding changes the sign of a sum.
  std::shared_ptr<MoeLayer> smooth_layer(at::ScalarType type) const {
    LayerForm form{.kind = GetParam().kind, .kind_settings = GetParam().settings};
    if (form.kind.ends_with("conv")) form.kind_settings["activation"] = "gelu";
    auto made = make_layer(form);
    made->to(type);
    return made;
  }
};

TEST_P(ExpertsAtTheirLimits, NoTokensGiveAnEmptyOutputAndZeroGradients) {
  for (const auto type : {torch::kFloat, torch::kDouble, torch::kBFloat16}) {
    const Pass pass = run_layer(*layer(type), torch::empty({0, kWidth}, type), 0);
    EXPECT_EQ(pass.out.tokens.sizes(), (std::vector<int64_t>{0, kWidth}));
    EXPECT_EQ(pass.out.tokens.scalar_type(), type);
    for (const auto& [name, value] : pass.all)
      EXPECT_TRUE(value.numel() == 0 || value.abs().max().item<double>() == 0) << name;
  }
}

// One expert with a gate of 1 is that expert on every token.
TEST_P(ExpertsAtTheirLimits, OneExpertTakesEveryToken) {
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    auto l = layer({.experts = 1, .router_settings = {{"k", 1}}}, type);
    const Pass pass = run_layer(*l, tokens(type), kImages);
    expect_finite(pass, GetParam().name);
    const at::Tensor x = tokens(type).requires_grad_(true), one = torch::tensor({int64_t{0}, int64_t{1}});
    std::vector<at::Tensor> rows;
    for (int64_t j = 0; j < kTokens; ++j) rows.push_back(l->experts().forward(x.narrow(0, j, 1), one));
    const at::Tensor each = torch::cat(rows);
    EXPECT_TRUE(test::near(pass.out.tokens, each, rounding(type) * (1 + each.abs().max().item<double>())));
    // Noise leaves a softmax over one expert at 1: the tokens' gradient is that of the experts alone.
    (each * test::random_tensor(each.sizes(), 4, type)).sum().backward();
    EXPECT_TRUE(test::near(pass.tokens_grad, x.grad(), rounding(type) * (1 + x.grad().abs().max().item<double>())));
  }
}

// Rows, weights, offsets and the gradient of the output: groups of 17, 0, 1 and 22 rows.
TEST_P(ExpertsAtTheirLimits, StridedAndMisalignedArgumentsGiveTheSameOutput) {
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    const at::Tensor offsets = torch::tensor(std::vector<int64_t>{0, 17, 17, 18, kTokens}, torch::kLong);
    const at::Tensor upstream = test::random_tensor({kTokens, kWidth}, 4, type);
    using Layout = at::Tensor (*)(const at::Tensor&);
    const Layout as_is = [](const at::Tensor& x) { return x; };
    const auto run = [&](Layout rows_in, Layout weights_in) {
      auto l = layer(type);
      for (at::Tensor& p : l->experts().parameters()) p.set_data(weights_in(p.detach()));
      const at::Tensor rows = rows_in(tokens(type)).requires_grad_(true);
      const at::Tensor out = l->experts().forward(rows, rows_in(offsets));
      out.backward(rows_in(upstream));
      std::vector<at::Tensor> all{out.detach(), rows.grad()};
      for (const auto& p : l->experts().named_parameters()) {
        EXPECT_EQ(p.value().grad()[1].abs().max().item<double>(), 0) << p.key();  // an expert without rows
        all.push_back(p.value().grad());
      }
      return all;
    };
    const std::vector<at::Tensor> plain = run(as_is, as_is);
    for (const Layout odd : {test::strided, test::misaligned})
      for (const auto& [rows_in, weights_in] :
           {std::pair{odd, as_is}, {as_is, odd}, {odd, odd}, {test::misaligned, test::strided}}) {
        const std::vector<at::Tensor> got = run(rows_in, weights_in);
        for (size_t i = 0; i < plain.size(); ++i)
          EXPECT_TRUE(test::near(got[i], plain[i], rounding(type) * (1 + plain[i].abs().max().item<double>())))
              << type << " result " << i;
      }
  }
}

// The same in a layer, which gets the tokens in their own layout.
TEST_P(ExpertsAtTheirLimits, StridedAndMisalignedTokensGiveTheSameOutputInALayer) {
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    auto l = layer(type);
    const Pass plain = run_layer(*l, tokens(type), kImages);
    for (const at::Tensor& x : {test::strided(tokens(type)), test::misaligned(tokens(type))})
      expect_same(run_layer(*l, x, kImages), plain, rounding(type));
  }
}

// fp32 weights and tokens of another type: the output is of the tokens' type, the gradients of the weights stay fp32.
// bf16 has 8 significant bits, fp16 11: four units of the last one are left for the sums of rounded numbers.
TEST_P(ExpertsAtTheirLimits, TokensOfOtherTypesAreAnsweredInTheirType) {
  for (const auto& [type, tolerance] : {std::pair{torch::kDouble, 1e-5},
                                        {torch::kBFloat16, 4 * std::ldexp(1.0, -8)},
                                        {torch::kHalf, 4 * std::ldexp(1.0, -11)}}) {
    auto l = smooth_layer(torch::kFloat);
    const at::Tensor x = tokens(type);
    const Pass pass = run_layer(*l, x, kImages), wide = run_layer(*l, x.to(torch::kFloat), kImages);
    EXPECT_EQ(pass.out.tokens.scalar_type(), type);
    EXPECT_EQ(pass.tokens_grad.scalar_type(), type);
    for (const auto& p : l->named_parameters()) EXPECT_EQ(p.value().grad().scalar_type(), torch::kFloat) << p.key();
    EXPECT_TRUE(torch::equal(pass.out.routing.expert, wide.out.routing.expert)) << type;
    expect_same(pass, wide, tolerance);
  }
}

// A layer that is bf16 throughout makes the choices of the fp32 layer of the same numbers and gives nearly the same
// output.
TEST_P(ExpertsAtTheirLimits, WeightsInBf16AnswerLikeTheSameNumbersInFp32) {
  auto low = smooth_layer(torch::kBFloat16), wide = smooth_layer(torch::kBFloat16);
  wide->to(torch::kFloat);
  const at::Tensor x = tokens(torch::kBFloat16);
  const Pass pass = run_layer(*low, x, kImages), want = run_layer(*wide, x.to(torch::kFloat), kImages);
  EXPECT_EQ(pass.out.tokens.scalar_type(), torch::kBFloat16);
  for (const auto& p : low->named_parameters()) EXPECT_EQ(p.value().grad().scalar_type(), torch::kBFloat16) << p.key();
  EXPECT_TRUE(torch::equal(pass.out.routing.expert, want.out.routing.expert));
  expect_same(pass, want, 4 * std::ldexp(1.0, -8));
}

TEST_P(ExpertsAtTheirLimits, TokensOfAnotherWidthAreRefusedInWords) {
  EXPECT_EQ(testing::error_text([&] {
              run_layer(*layer(), torch::zeros({kTokens, 7}), kImages);
            }),
            "the MoE layer moe takes tokens [N, 8], got [40, 7]");
}

TEST_P(ExpertsAtTheirLimits, NanStaysWithItsTokenAlsoInTheTokensGradient) {
  auto l = layer();
  at::Tensor x = tokens();
  const Pass clean = run_layer(*l, x, kImages);
  x = x.clone();
  x[13][2] = kNan;
  const Pass pass = run_layer(*l, x, kImages);
  for (int64_t j = 0; j < kTokens; ++j) {
    if (j == 13) continue;
    EXPECT_TRUE(test::near(pass.out.tokens[j], clean.out.tokens[j], 1e-5)) << j;
  }
  // norm_conv's experts write channels of their own: those of experts that did not take the token are 0.
  const at::Tensor nan = pass.out.tokens[13].isnan();
  EXPECT_TRUE((GetParam().kind == "norm_conv" ? nan.any() : nan.all()).item<bool>());
}

TEST_P(ExpertsAtTheirLimits, AllTokensToOneExpert) {
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    auto l = layer({.router = "hash"}, type);
    RoutingContext pool;
    pool.token_id = torch::zeros({kTokens}, torch::kLong);
    const Pass pass = run_layer(*l, tokens(type), kImages, pool);
    expect_finite(pass, GetParam().name);
    EXPECT_EQ(pass.out.routing.chosen_count.max().item<int64_t>(), kTokens);
    const int64_t busy = pass.out.routing.expert[0].item<int64_t>();
    for (const auto& p : l->experts().named_parameters())
      for (int64_t e = 0; e < kExperts; ++e)
        EXPECT_EQ(p.value().grad()[e].abs().max().item<double>() > 0, e == busy) << p.key() << " " << e;
  }
}

TEST_P(ExpertsAtTheirLimits, HaveTheSameBitsForAnyNumberOfThreads) {
  auto l = layer({.experts = 8, .width = 32, .hidden = 64});
  const at::Tensor x = test::random_tensor({4096, 32}, 3, torch::kFloat);
  expect_same_bits_for_any_number_of_threads([&] { return run_layer(*l, x, 8).all; });
}

TEST_P(ExpertsAtTheirLimits, WeightsOfAnotherShapeAreRefused) {
  const auto wide = layer({.width = 32}), narrow = layer();
  LoadOptions strict;
  strict.strict = true;
  EXPECT_THROW(load_weights(*narrow, named_weights(*wide), strict), Error);
}

INSTANTIATE_TEST_SUITE_P(Registry, ExpertsAtTheirLimits, ::testing::ValuesIn(expert_forms()),
                         [](const auto& info) { return info.param.name; });

}  // namespace sparsight::limits_test
