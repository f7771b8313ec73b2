// Every kind of expert, in every form that its settings allow: against its definition by single rows, gradients by
// central differences, experts without rows, no rows at all, outputs of another width.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "sparsight/moe/experts/conv_experts.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/nn/init.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::expert_kinds_test {

struct Form {
  std::string kind;
  Json settings;
  int64_t outputs = 0;
};

void PrintTo(const Form& form, std::ostream* out) { *out << form.kind << " " << form.settings << " " << form.outputs; }

namespace {

constexpr int64_t kExperts = 4, kWidth = 8, kHidden = 5, kRows = 8;

// Groups of 3, 0, 1, 4 rows.
at::Tensor ragged_offsets() { return torch::tensor({0, 3, 3, 4, 8}, torch::kLong); }
const std::vector<int64_t> kExpertOfRow{0, 0, 0, 2, 3, 3, 3, 3};

const std::vector<Form> kForms{
    {"mlp", Json::object()},
    {"mlp", {{"activation", "gelu_tanh"}}},
    {"mlp", {{"bias", false}, {"activation", "relu"}}},
    {"mlp", {{"depth", 4}}},
    {"mlp", Json::object(), 3},
    {"mlp", {{"depth", 2}, {"bias", false}, {"activation", "silu"}}, 3},
    {"swiglu", Json::object()},
    {"swiglu", {{"bias", true}}, 3},
    {"linear", Json::object()},
    {"linear", {{"bias", false}}, 3},
    {"conv", Json::object()},
    {"conv", {{"channels", 2}, {"kernel", 1}, {"activation", "silu"}, {"bias", true}}},
    {"conv", {{"channels", 2}, {"kernel", 2}, {"padding", 1}, {"pool", "mean"}, {"activation", "gelu"}}},
    {"conv", {{"channels", 2}, {"output", "normal"}, {"activation", "gelu"}}, 3},
};

std::shared_ptr<Experts> make(const Form& form, at::ScalarType type = torch::kDouble) {
  auto experts =
      expert_kinds().make(form.kind, form.settings, "experts", ExpertShape{kExperts, kWidth, kHidden, form.outputs});
  initialize(*experts, 1);
  experts->to(type);
  const torch::NoGradGuard no_grad;
  for (at::Tensor& p : experts->parameters()) p.mul_(20).add_(0.1);  // far from 0, so that every term shows
  return experts;
}

using Weights = std::map<std::string, at::Tensor>;  // of one expert, in fp64

Weights expert_state(const Experts& experts, int64_t expert) {
  Weights weights;
  for (const auto& p : experts.named_parameters()) weights[p.key()] = p.value()[expert].to(torch::kDouble);
  for (const auto& b : experts.named_buffers()) weights[b.key()] = b.value()[expert].to(torch::kDouble);
  return weights;
}

at::Tensor affine(const at::Tensor& x, const Weights& w, int64_t number) {
  const at::Tensor y = x.matmul(w.at(cat("w", number)));
  const auto bias = w.find(cat("b", number));
  return bias == w.end() ? y : y + bias->second;
}

// One row through one expert, by the definition in the header of each kind.
at::Tensor by_definition(const Form& form, const at::Tensor& x, const Weights& w) {
  const Activation activation =
      parse_activation(form.settings.value("activation", form.kind == "conv" ? "relu" : "gelu"));
  if (form.kind == "linear") return affine(x, w, 1);
  if (form.kind == "swiglu") {
    const at::Tensor both = affine(x, w, 1);
    return affine(at::silu(both.narrow(0, 0, kHidden)) * both.narrow(0, kHidden, kHidden), w, 2);
  }
  if (form.kind == "mlp") {
    at::Tensor y = affine(x, w, 1);
    for (int64_t layer = 2; w.count(cat("w", layer)); ++layer) y = affine(activate(y, activation), w, layer);
    return y;
  }
  const int64_t channels = form.settings.value("channels", kWidth), side = channels == kWidth ? 1 : 2;
  const int64_t kernel = form.settings.value("kernel", side);
  const at::Tensor filters = w.at("w1").t().reshape({kHidden, channels, kernel, kernel});
  const at::Tensor map =
      activate(at::conv2d(x.view({1, channels, side, side}), filters, w.count("b1") ? w.at("b1") : at::Tensor(), 1,
                          form.settings.value("padding", 0)),
               activation)
          .flatten(2)
          .squeeze(0);  // [F,L]
  return (form.settings.value("pool", "sum") == "sum" ? map.sum(1) : map.mean(1)).matmul(w.at("w2"));
}

}  // namespace

class ExpertForm : public ::testing::TestWithParam<Form> {};

TEST_P(ExpertForm, EqualsItsDefinitionRowByRow) {
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    const auto experts = make(GetParam(), type);
    const at::Tensor rows = test::random_tensor({kRows, kWidth}, 2, type);
    const at::Tensor out = experts->forward(rows, ragged_offsets());
    ASSERT_EQ(out.sizes(), (std::vector<int64_t>{kRows, GetParam().outputs ? GetParam().outputs : kWidth}));
    EXPECT_EQ(out.scalar_type(), type);
    const double tol = (type == torch::kDouble ? 1e-10 : 1e-5) * std::max(1.0, out.abs().max().item<double>());
    for (int64_t r = 0; r < kRows; ++r) {
      const at::Tensor expected =
          by_definition(GetParam(), rows[r].to(torch::kDouble), expert_state(*experts, kExpertOfRow[r]));
      EXPECT_TRUE(test::near(out[r], expected, tol)) << type << " " << r;
    }
  }
}

TEST_P(ExpertForm, GradientsAgreeWithCentralDifferencesAndAreZeroWithoutRows) {
  const auto experts = make(GetParam());
  const at::Tensor rows = test::random_tensor({kRows, kWidth}, 2);
  const at::Tensor upstream = test::random_tensor(experts->forward(rows, ragged_offsets()).sizes(), 3) * 0.1;
  std::vector<at::Tensor> inputs = experts->parameters();
  inputs.push_back(rows);
  const auto loss = [&] { return (experts->forward(rows, ragged_offsets()) * upstream).sum(); };
  EXPECT_LT(test::gradient_error(loss, inputs, 1e-6), 1e-6);
  for (const at::Tensor& p : experts->parameters()) EXPECT_EQ(p.grad()[1].abs().max().item<double>(), 0);
}

TEST_P(ExpertForm, NoRowsAtAllGiveAnEmptyResultAndZeroGradients) {
  const auto experts = make(GetParam());
  const at::Tensor out =
      experts->forward(torch::empty({0, kWidth}, torch::kDouble), torch::zeros({kExperts + 1}, torch::kLong));
  EXPECT_EQ(out.size(0), 0);
  out.sum().backward();
  for (const at::Tensor& p : experts->parameters()) EXPECT_EQ(p.grad().abs().max().item<double>(), 0);
}

INSTANTIATE_TEST_SUITE_P(Experts, ExpertForm, ::testing::ValuesIn(kForms));

// [experts] init of every kind: w1 of 50 inputs, and what a kind's paper says by default.
TEST(ExpertInit, EveryKindTakesItAndKeepsItsPapersDefault) {
  const auto w1 = [](const std::string& kind, const Json& settings) {
    const auto experts = expert_kinds().make(kind, settings, "experts", ExpertShape{4, 50, 40, 200});
    initialize(*experts, 1);
    return experts->named_parameters()["w1"].detach().clone();
  };
  for (const std::string& kind : expert_kinds().names()) {
    const at::Tensor by_default = w1(kind, Json::object());
    at::Tensor expected = torch::zeros_like(by_default);
    const RandomStream stream(1, "init/w1");
    if (kind == "norm_conv")  // Glorot: the paper's code; a fan is 9 positions times 50 channels or 200 / 4 filters
      init_uniform(expected, std::sqrt(6.0 / (9 * 50 + 9 * 50)), stream);
    else
      init_normal(expected, 0.02, stream);
    EXPECT_TRUE(torch::equal(by_default, expected)) << kind;
    const double fan_in = kind == "norm_conv" ? 9 * 50 : 50;
    const at::Tensor scaled = w1(kind, {{"init", "fan_in"}});
    EXPECT_NEAR(scaled.std().item<double>() * std::sqrt(fan_in), 1, 4 / std::sqrt(2.0 * scaled.numel())) << kind;
    EXPECT_LE(w1(kind, {{"init", "trunc_normal"}, {"init_std", 0.5}}).abs().max().item<double>(), 1.0001) << kind;
  }
}

// All linear layers and their biases, of routed and shared experts.
TEST(ExpertInit, ReachesEveryLayer) {
  const auto experts =
      expert_kinds().make("mlp", {{"init", "torch_linear"}, {"depth", 2}}, "experts", ExpertShape{2, 25, 100, 0});
  initialize(*experts, 1);
  for (const auto& p : experts->named_parameters()) {
    const double bound = p.key().ends_with('1') ? 1 / std::sqrt(25) : 1 / std::sqrt(100),
                 max = p.value().abs().max().item<double>();
    EXPECT_LE(max, bound) << p.key();
    EXPECT_GT(max, 0.9 * bound) << p.key();
  }
  EXPECT_NE(testing::error_text<UsageError>([] {
              expert_kinds().make("mlp", {{"init", "fanin"}}, "experts", ExpertShape{2, 8, 8, 0});
            }).find("fan_in"),
            std::string::npos);
}

TEST(ConvExperts, FixedOutputWeightsAreSavedButNotTrained) {
  const auto experts = make({"conv", {{"output", "normal"}}});
  EXPECT_EQ(experts->parameters().size(), 1u);
  const at::Tensor fixed = experts->named_buffers()["w2"];
  EXPECT_NEAR(fixed.std().item<double>(), 1, 0.2);  // 160 samples of N(0,1)
}

TEST(ConvExperts, AWidthThatIsNoPatchIsRefused) {
  const auto message = [](const Json& settings) {
    return testing::error_text<UsageError>([&] { make({"conv", settings}); });
  };
  EXPECT_NE(message({{"channels", 3}}).find("not a square patch"), std::string::npos);
  EXPECT_NE(message({{"channels", 2}, {"kernel", 5}}).find("larger than the patch"), std::string::npos);
}

}  // namespace sparsight::expert_kinds_test
