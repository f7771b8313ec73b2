// Experts that no token chose: their weights are not read, and an optimiser step treats their gradient as 0.
#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/moe/moe_layer.h"
#include "sparsight/nn/init.h"
#include "sparsight/optim/muon.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::unchosen_experts_test {
namespace {

using test::near;

constexpr int64_t kTokens = 200, kWidth = 4, kExperts = 5;
constexpr TokenLayout kLayout{1, kTokens, 0, 0, 0};

std::shared_ptr<MoeLayer> build_layer(const std::string& router, const Json& kind, at::ScalarType type) {
  const MoeSpec spec = read_moe_spec({{"moe", {{"experts", kExperts}}},
                                      {"experts", kind},
                                      {"losses", Json::object()},
                                      {"router", {{"name", router}, {"k", 2}}}});
  auto layer = std::make_shared<MoeLayer>(spec, LayerContext{"moe", kWidth, 7});
  initialize(*layer, 1);
  layer->to(type);
  const torch::NoGradGuard no_grad;
  for (at::Tensor& p : layer->experts().parameters()) p.mul_(20);
  return layer;
}

// Tokens with a first feature of 1, by which a router can shut experts out.
at::Tensor tokens(at::ScalarType type) {
  at::Tensor x = test::random_tensor({kTokens, kWidth}, 3, type);
  x.select(1, 0).fill_(1);
  return x;
}

at::Tensor chosen() { return torch::tensor({0, 2, 4}, torch::kLong); }
at::Tensor unchosen() { return torch::tensor({1, 3}, torch::kLong); }

// A layer whose experts 1 and 3 are never chosen and have `in_unchosen` in all their weights.
std::shared_ptr<MoeLayer> shut_layer(const Json& kind, at::ScalarType type, double in_unchosen) {
  auto layer = build_layer("softmax_topk", kind, type);
  const torch::NoGradGuard no_grad;
  at::Tensor weight = *layer->router().named_parameters().find("weight");  // [E,D]
  weight.copy_(test::random_tensor({kExperts, kWidth}, 5));
  weight.select(1, 0).index_fill_(0, unchosen(), -50);
  for (at::Tensor& p : layer->experts().parameters()) p.index_fill_(0, unchosen(), in_unchosen);
  return layer;
}

using Named = std::vector<std::pair<std::string, at::Tensor>>;

// Everything that a training step and an evaluation of the layer give, but for the gradients of experts 1 and 3, which
// must be 0.
Named all_of(MoeLayer& layer, at::ScalarType type) {
  const at::Tensor x = tokens(type).requires_grad_(true);
  MoeOutput out = layer.forward({x, kLayout, ForwardMode::training(), {5, 6}});
  EXPECT_EQ(out.routing.chosen_count.index_select(0, unchosen()).sum().item<int64_t>(), 0);
  EXPECT_GT(out.routing.chosen_count.index_select(0, chosen()).min().item<int64_t>(), 0);
  out.routing.gate.retain_grad();
  at::Tensor total = (out.tokens * test::random_tensor({kTokens, kWidth}, 4, type)).sum();
  for (const NamedLoss& loss : out.routing.losses) total = total + loss.weight * loss.value;
  total.backward();
  Named all{{"output", out.tokens.detach()}, {"tokens", x.grad()}, {"gates", out.routing.gate.grad()}};
  for (const auto& p : layer.router().named_parameters()) all.emplace_back(p.key(), p.value().grad());
  for (const auto& p : layer.experts().named_parameters()) {
    const at::Tensor grad = p.value().grad();
    EXPECT_TRUE((grad.index_select(0, unchosen()) == 0).all().item<bool>()) << p.key();
    all.emplace_back(p.key(), grad.index_select(0, chosen()));
  }
  const torch::NoGradGuard no_grad;
  all.emplace_back("evaluation", layer.forward({x, kLayout}).tokens);
  return all;
}

}  // namespace

class UnchosenExperts : public ::testing::TestWithParam<at::ScalarType> {};

// Anything multiplied by a NaN would be NaN, in the forward pass or in the backward pass. Rows are counted in
// moe_layer_test.cpp.
TEST_P(UnchosenExperts, S28_TheirWeightsAreNotLookedAt) {
  for (const Json& kind :
       {Json{{"name", "mlp"}},  // in the kernel for gathering, experts and combining at once
        Json{{"name", "mlp"}, {"recompute", true}}, Json{{"name", "mlp"}, {"bias", false}, {"activation", "relu"}},
        Json{{"name", "mlp"}, {"depth", 3}}, Json{{"name", "mlp"}, {"dropout", 0.3}},
        Json{{"name", "swiglu"}, {"bias", true}}, Json{{"name", "linear"}}}) {
    const Named with_nan = all_of(*shut_layer(kind, GetParam(), NAN), GetParam()),
                with_zero = all_of(*shut_layer(kind, GetParam(), 0), GetParam());
    ASSERT_EQ(with_nan.size(), with_zero.size());
    for (size_t i = 0; i < with_nan.size(); ++i) {
      const auto& [name, value] = with_nan[i];
      EXPECT_TRUE(torch::isfinite(value).all().item<bool>()) << kind << " " << name;
      EXPECT_GT(value.abs().max().item<double>(), 0) << kind << " " << name;
      EXPECT_TRUE(torch::equal(value, with_zero[i].second)) << kind << " " << name;
    }
  }
}

namespace {

using State = std::map<std::string, at::Tensor>;  // "" for the parameter itself, else as the optimiser names it

constexpr double kRate = 0.05, kDecay = 0.1;

// What belongs to experts 2 to 4, in fp64.
State unchosen_state(const Optimizer& optimizer, const OptimizedParameter& parameter) {
  const auto rest = [](const at::Tensor& t) { return t.detach().slice(0, 2).to(torch::kDouble).clone(); };
  State state{{"", rest(parameter.value)}};
  for (const auto& [name, tensor] : optimizer.state())
    if (name.starts_with(parameter.name + "/") && tensor.dim() > 0)
      state[name.substr(parameter.name.size() + 1)] = rest(tensor);
  return state;
}

// The second step by the formulas of the optimisers for a gradient of 0, with their usual rates: momentum 0.9, betas
// 0.9 and 0.999, epsilon 1e-8.
State after_zero_gradient(const std::string& optimizer, State s) {
  at::Tensor& p = s.at("");
  if (optimizer == "sgd") {  // Nesterov's momentum
    s["momentum"] = 0.9 * s["momentum"] + kDecay * p;
    p = p - kRate * (kDecay * p + 0.9 * s["momentum"]);
    return s;
  }
  if (s.count("row")) {  // a matrix of factored_adam: the step is 0 over something
    s["row"] = 0.999 * s["row"];
    s["column"] = 0.999 * s["column"];
    p = (1 - kRate * kDecay) * p;
    return s;
  }
  if (optimizer == "muon" && s.count("momentum")) {  // a matrix: its direction stays, whatever the momentum's size
    const double scale = std::sqrt(std::max(1.0, static_cast<double>(p.size(-2)) / static_cast<double>(p.size(-1))));
    p = (1 - kRate * kDecay) * p - kRate * scale * orthogonalize(s["momentum"], 5);
    s["momentum"] = 0.95 * s["momentum"];
    return s;
  }
  const bool muon = optimizer == "muon";  // its vectors have a tenth of the rate, and betas 0.9 and 0.95
  const double rate = muon ? 0.1 * kRate : kRate, beta2 = muon ? 0.95 : 0.999;
  const at::Tensor gradient = optimizer == "adam" ? kDecay * p : torch::zeros_like(p);  // decay joins the gradient
  if (optimizer != "adam") p = (1 - rate * kDecay) * p;                                 // or shrinks the parameter
  s["exp_avg"] = 0.9 * s["exp_avg"] + 0.1 * gradient;
  s["exp_avg_sq"] = beta2 * s["exp_avg_sq"] + (1 - beta2) * gradient.square();
  const at::Tensor mean = s["exp_avg"] / (1 - 0.9 * 0.9), square = s["exp_avg_sq"] / (1 - beta2 * beta2);
  p = p - rate * mean / (square.sqrt() + 1e-8);
  return s;
}

}  // namespace

// Section 6 of the specification: the gradient is exactly 0, and the optimiser's state decays as for a zero gradient.
// In the first step the noise of a router at zero gives every expert tokens, so that moments are not 0; in evaluation
// all its logits tie, and everything goes to experts 0 and 1.
TEST_P(UnchosenExperts, S29_AStepOfAnyOptimiserIsThatOfAZeroGradient) {
  const double tol = GetParam() == torch::kDouble ? 1e-10 : 1e-5;
  for (const std::string& name : optimizers().names()) {
    auto layer = build_layer("noisy_topk", {{"name", "mlp"}}, GetParam());
    std::vector<OptimizedParameter> parameters;
    for (const auto& p : layer->experts().named_parameters())
      parameters.push_back({"experts." + p.key(), p.value(), true});
    const auto optimizer = optimizers().make(name, {{"weight_decay", kDecay}}, "optimizer", parameters);
    const auto gradients = [&](const ForwardMode& mode) {  // returns how often experts 2 to 4 were chosen
      optimizer->zero_grad();
      const MoeOutput out = layer->forward({tokens(GetParam()), kLayout, mode, {5, 6}});
      out.tokens.square().mean().backward();
      return out.routing.chosen_count.slice(0, 2);
    };
    ASSERT_GT(gradients(ForwardMode::training()).min().item<int64_t>(), 0);
    optimizer->step(kRate);
    ASSERT_EQ(gradients(ForwardMode::evaluation()).sum().item<int64_t>(), 0);
    std::vector<State> before;
    std::vector<at::Tensor> busy;
    for (const OptimizedParameter& p : parameters) {
      EXPECT_EQ(p.value.grad().slice(0, 2).abs().max().item<double>(), 0) << p.name;
      before.push_back(unchosen_state(*optimizer, p));
      busy.push_back(p.value.detach().slice(0, 0, 2).clone());
    }
    optimizer->step(kRate);
    for (size_t i = 0; i < parameters.size(); ++i) {
      const std::string what = name + " " + parameters[i].name;
      EXPECT_FALSE(torch::equal(parameters[i].value.slice(0, 0, 2), busy[i])) << what;
      const State after = unchosen_state(*optimizer, parameters[i]), wanted = after_zero_gradient(name, before[i]);
      EXPECT_GE(after.size(), 2u) << what;
      ASSERT_EQ(after.size(), wanted.size()) << what;
      for (const auto& [part, value] : wanted) {
        EXPECT_TRUE(near(after.at(part), value, tol * value.abs().max().item<double>())) << what << " " << part;
        EXPECT_FALSE(torch::equal(after.at(part), before[i].at(part))) << what << " " << part;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, UnchosenExperts, ::testing::Values(torch::kFloat, torch::kDouble));

}  // namespace sparsight::unchosen_experts_test
