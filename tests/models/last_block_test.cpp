// The last block of a vision transformer computes only the class token, which is all that the head reads. A pass whose
// taps read all tokens is the judge.
#include <gtest/gtest.h>

#include <torch/types.h>

#include "sparsight/models/vit.h"
#include "sparsight/nn/init.h"
#include "tests/ops/expert_cases.h"
#include "tests/support/near.h"
#include "tests/support/program_answers.h"
#include "tests/support/thread_count.h"

namespace sparsight::last_block_test {
namespace {

// An MoE layer in the last block (and one before), or none.
MoeSpec make_spec(const std::string& router) {
  if (router.empty()) return {};
  const bool dropping = router == "noisy_topk";
  return read_moe_spec({{"moe", {{"blocks", {0, 2}}, {"experts", 4}, {"hidden", 24}, {"shared", dropping ? 1 : 0}}},
                        {"experts", {{"name", "mlp"}, {"dropout", dropping ? 0.2 : 0.0}}},
                        {"capacity", {{"factor", dropping ? 0.7 : 0.0}}},
                        {"losses", {{"vmoe_importance", 0.5}}},
                        {"router", {{"name", router}}}});
}

std::shared_ptr<Vit> make_vit(const std::string& router, const std::string& pool, bool recompute = false,
                              int64_t width = 24) {
  VitOptions options;
  options.pool = pool, options.recompute = recompute;
  options.width = width, options.depth = 3, options.heads = 4, options.patch = 4;
  options.dropout = 0.2, options.drop_path = 0.4;
  auto model = std::make_shared<Vit>(options, ModelContext{{3, 12, 16, 10}, make_spec(router)});
  initialize(*model, 3);
  const torch::NoGradGuard no_grad;
  uint64_t seed = 1;
  for (at::Tensor& parameter : model->parameters())
    parameter.add_(test::random_tensor(parameter.sizes(), seed++, torch::kFloat) * 0.2);
  return model;
}

struct Pass {
  at::Tensor logits, pixels;  // and the gradient of the pixels
  std::vector<at::Tensor> losses, gradients;
};
Pass run_pass(Vit& model, const at::Tensor& images, const ForwardMode& mode, const std::vector<std::string>& taps) {
  const at::Tensor x = images.clone().requires_grad_(true);
  model.zero_grad();
  const ModelOutput out = model.forward({.images = x, .mode = mode, .random = {1, 7}, .taps = taps});
  Pass pass{out.logits.detach(), {}, {}, {}};
  at::Tensor sum = out.logits.square().sum();
  for (const NamedLoss& loss : out.losses) {
    sum = sum + loss.weight * loss.value;
    pass.losses.push_back(loss.value.detach());
  }
  sum.backward();
  pass.pixels = x.grad();
  for (const at::Tensor& p : model.parameters())
    pass.gradients.push_back(p.grad().defined() ? p.grad().clone() : at::zeros_like(p));
  return pass;
}

::testing::AssertionResult relatively_near(const at::Tensor& got, const at::Tensor& want) {
  return test::near(got, want, 2e-5 * std::max(1e-3, want.abs().max().item<double>()));
}

}  // namespace

TEST(LastBlock, HasTheLogitsLossesAndGradientsOfAPassOverAllTokens) {
  const at::Tensor images = test::random_tensor({5, 3, 12, 16}, 5, torch::kFloat).abs();
  for (const std::string router : {"", "softmax_topk", "noisy_topk", "soft_moe"})
    for (const bool recompute : {false, true})
      for (const ForwardMode& mode : {ForwardMode::evaluation(), ForwardMode::training()}) {
        const auto model = make_vit(router, "class", recompute);
        const Pass read = run_pass(*model, images, mode, {}), all = run_pass(*model, images, mode, {"norm"});
        SCOPED_TRACE(router + (recompute ? ", recompute" : "") + (mode.dropout ? ", training" : ""));
        EXPECT_TRUE(relatively_near(read.logits, all.logits));
        EXPECT_TRUE(relatively_near(read.pixels, all.pixels));
        EXPECT_GT(all.pixels.abs().max().item<double>(), 0);
        ASSERT_EQ(read.losses.size(), all.losses.size());
        for (size_t i = 0; i < read.losses.size(); ++i) EXPECT_TRUE(torch::equal(read.losses[i], all.losses[i]));
        for (size_t i = 0; i < read.gradients.size(); ++i)
          EXPECT_TRUE(relatively_near(read.gradients[i], all.gradients[i])) << i;
      }
}

TEST(LastBlock, InAProgramTooForAnyNumberOfThreads) {
  const torch::NoGradGuard no_grad;
  for (const auto& [router, width] : {std::pair{"", int64_t{24}}, {"", 400}, {"softmax_topk", 24}})
    for (const std::string pool : {"class", "mean"}) {
      const auto model = make_vit(router, pool, false, width);
      for (const int64_t count : {1, 2, 3, 9}) {
        const at::Tensor images = test::random_tensor({count, 3, 12, 16}, 5, torch::kFloat).abs();
        const at::Tensor all = model->forward({.images = images, .taps = {"blocks.2"}}).logits;
        at::Tensor bits;
        for (const int threads : {1, 2, 4}) {
          const test::ThreadCount some(threads);
          const at::Tensor read = test::program_logits(*model, images);
          EXPECT_TRUE(relatively_near(read, all)) << router << " " << width << " " << pool << ", " << count;
          if (!bits.defined()) bits = read;
          EXPECT_TRUE(torch::equal(read, bits)) << router << " " << width << " " << pool << ", " << threads;
        }
      }
    }
}

// All tokens are routed and recorded, with the experts of the class token computed alone.
TEST(LastBlock, StillRoutesAllTokens) {
  const auto model = make_vit("softmax_topk", "class");
  const ModelOutput out = model->forward({.images = at::rand({2, 3, 12, 16})});
  ASSERT_EQ(out.routings.size(), 2);
  EXPECT_EQ(out.routings[1].layer, "blocks.2.mlp");
  EXPECT_EQ(out.routings[1].tokens, 2 * 13);
  EXPECT_EQ(out.routings[1].order.numel(), out.routings[1].expert.numel());
}

}  // namespace sparsight::last_block_test
