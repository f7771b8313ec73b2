#include "sparsight/moe/experts/recompute.h"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "sparsight/core/error.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/nn/init.h"
#include "tests/support/gradcheck.h"
#include "tests/support/live_bytes.h"
#include "tests/support/random_tensor.h"

namespace sparsight::recompute_test {
namespace {

constexpr int64_t kTokens = 256, kWidth = 16, kHidden = 64, kRows = 2 * kTokens;  // k = 2

// A layer of 4 experts of a kind, and one shared one.
std::shared_ptr<MoeLayer> make_layer(const Json& kind, bool recompute, const std::string& router) {
  Json experts = kind;
  experts["recompute"] = recompute;
  const MoeSpec spec = read_moe_spec({{"moe", {{"experts", 4}, {"hidden", kHidden}, {"shared", 1}}},
                                      {"experts", experts},
                                      {"losses", Json::object()},
                                      {"router", {{"name", router}}}});
  auto layer = std::make_shared<MoeLayer>(spec, LayerContext{"moe", kWidth, kHidden});
  initialize(*layer, 1);
  const torch::NoGradGuard no_grad;
  for (auto& p : layer->named_parameters()) p.value().add_(test::random_tensor(p.value().sizes(), 5) * 0.2);
  return layer;
}

// The layer's output, its noisy logits and all gradients, losses included.
std::vector<at::Tensor> pass(MoeLayer& layer, at::ScalarType type, bool lowered = false) {
  layer.to(type);
  const at::Tensor x = test::random_tensor({kTokens, kWidth}, 3, type).requires_grad_(true);
  at::autocast::set_autocast_enabled(at::kCPU, lowered);
  const MoeOutput out = layer.forward({x, {4, kTokens / 4, 0, 8, 8}, ForwardMode::training(), {1, 2}});
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::Tensor total = (out.tokens * test::random_tensor({kTokens, kWidth}, 4, type)).sum();
  for (const NamedLoss& loss : out.routing.losses) total = total + loss.weight * loss.value;
  total.backward();
  std::vector<at::Tensor> all{out.tokens, x.grad()};
  if (out.routing.noisy_logits.defined()) all.push_back(out.routing.noisy_logits);
  for (const at::Tensor& p : layer.parameters()) all.push_back(p.grad());
  return all;
}

// The bytes that a forward pass keeps until the backward pass.
int64_t count_live_bytes(MoeLayer& layer) {
  const at::Tensor x = test::random_tensor({kTokens, kWidth}, 3, torch::kFloat).requires_grad_(true);
  layer.forward({x, {1, kTokens, 0, 0, 0}, ForwardMode::training(), {1, 2}});  // buffers that stay
  const test::LiveBytes live;
  const MoeOutput out = layer.forward({x, {1, kTokens, 0, 0, 0}, ForwardMode::training(), {1, 2}});
  return live.count();
}

const std::vector<Json> kKinds{{{"name", "mlp"}},
                               {{"name", "mlp"}, {"depth", 3}},
                               {{"name", "swiglu"}},
                               {{"name", "linear"}},
                               {{"name", "conv"}, {"channels", 4}, {"kernel", 1}},
                               {{"name", "mlp"}, {"dropout", 0.2}},
                               {{"name", "mlp"}, {"depth", 3}, {"dropout", 0.2}}};

}  // namespace

TEST(Recompute, S34_ChangesNoBitOfAnyOutputGradientOrNoise) {
  for (const Json& kind : kKinds)
    for (const std::string router : {"noisy_topk", "soft_moe"})
      for (const auto& [type, lowered] :
           {std::pair{torch::kFloat, false}, {torch::kDouble, false}, {torch::kFloat, true}}) {
        const auto kept = pass(*make_layer(kind, false, router), type, lowered);
        const auto again = pass(*make_layer(kind, true, router), type, lowered);
        ASSERT_EQ(kept.size(), again.size());
        for (size_t i = 0; i < kept.size(); ++i)
          EXPECT_TRUE(torch::equal(kept[i], again[i])) << kind << " " << router << " " << type << lowered << " " << i;
      }
}

TEST(Recompute, S34_HoldsFewerBytesUntilTheBackwardPass) {
  const auto saved = [](const Json& kind) {
    return count_live_bytes(*make_layer(kind, false, "noisy_topk")) -
           count_live_bytes(*make_layer(kind, true, "noisy_topk"));
  };
  constexpr int64_t hidden = kRows * kHidden * 4, width = kRows * kWidth * 4;  // of the routed rows, fp32
  constexpr int64_t shared = kTokens * kHidden * 4;
  EXPECT_GE(saved(kKinds[0]), hidden + shared);                           // hidden layers before their activation,
  EXPECT_LE(saved(kKinds[0]), hidden + shared + 3 * 8 * (kTokens + 64));  // and where the shared expert's rows go
  EXPECT_GE(saved(kKinds[1]), 6 * hidden);                                // three hidden layers, before and after
  EXPECT_GE(saved(kKinds[2]), 3 * hidden);                                // both halves and their product
  EXPECT_GE(saved(kKinds[3]), 2 * width);                                 // rows and results
  EXPECT_GE(saved(kKinds[4]), hidden);
}

TEST(Recompute, GradientsAgreeWithCentralDifferences) {
  for (const Json& kind : kKinds) {
    auto layer = make_layer(kind, true, "softmax_topk");
    layer->to(torch::kDouble);
    const at::Tensor x = test::random_tensor({3, kWidth}, 3), upstream = test::random_tensor({3, kWidth}, 4);
    const auto loss = [&] {
      return (layer->forward({x, {1, 3, 0, 0, 0}, ForwardMode::training(), {1, 2}}).tokens * upstream).sum();
    };
    EXPECT_LT(test::gradient_error(loss, {x}, 1e-6), 1e-6) << kind;
  }
}

TEST(Recompute, KeepsTheModuleAliveAndHasNoSecondDerivative) {
  class Scale : public torch::nn::Module {
   public:
    at::Tensor factor = register_parameter("factor", torch::tensor(3.0));
  };
  const at::Tensor x = torch::tensor({2.0, 5.0}).requires_grad_(true);
  auto scale = std::make_shared<Scale>();
  const at::Tensor factor = scale->factor;
  const Scale* inside = scale.get();
  at::Tensor y = recomputed(*scale, {x}, [inside](const auto& in) { return in[0] * inside->factor; });
  scale.reset();
  y.sum().backward();
  EXPECT_TRUE(torch::equal(x.grad(), torch::tensor({3.f, 3.f})));
  EXPECT_EQ(factor.grad().item<double>(), 7);
  auto other = std::make_shared<Scale>();
  y = recomputed(*other, {x}, [&](const auto& in) { return in[0] * other->factor; });
  EXPECT_THROW(torch::autograd::grad({y.sum()}, {x}, {}, true, /*create_graph=*/true), Error);
}

}  // namespace sparsight::recompute_test
