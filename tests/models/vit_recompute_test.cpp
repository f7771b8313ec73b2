#include <gtest/gtest.h>

#include <torch/types.h>

#include "sparsight/models/vit.h"
#include "sparsight/nn/init.h"
#include "sparsight/optim/precision.h"
#include "tests/support/live_bytes.h"
#include "tests/support/random_tensor.h"

namespace sparsight::vit_recompute_test {
namespace {

// blocks: those with MoE layers.
std::shared_ptr<Vit> make_vit(bool recompute, const std::vector<int64_t>& blocks) {
  MoeSpec spec = read_moe_spec({{"moe", {{"experts", 4}}},
                                {"experts", {{"name", "mlp"}, {"recompute", recompute}}},
                                {"losses", Json::object()},
                                {"router", {{"name", "noisy_topk"}}}});
  spec.options.blocks = blocks;
  VitOptions options;
  options.width = 16, options.depth = 3, options.heads = 2;
  options.dropout = 0.2, options.drop_path = 0.3;
  options.recompute = recompute;
  auto vit = std::make_shared<Vit>(options, ModelContext{{1, 8, 8, 3}, spec});
  initialize(*vit, 1);
  const torch::NoGradGuard no_grad;
  for (auto& p : vit->named_parameters()) p.value().add_(test::random_tensor(p.value().sizes(), 5) * 0.2);
  return vit;
}

at::Tensor forward_total(Vit& vit, const at::Tensor& images, uint64_t step, std::vector<at::Tensor>* seen = nullptr) {
  const ModelOutput out = vit.forward({images, ForwardMode::training(), {1, step}});
  at::Tensor total = out.logits.square().sum();
  for (const NamedLoss& loss : out.losses) total = total + loss.weight * loss.value;
  if (!seen) return total;
  seen->push_back(out.logits.detach());
  for (const NamedLoss& loss : out.losses) seen->push_back(loss.value.detach());
  for (const Routing& routing : out.routings) {
    seen->push_back(routing.noisy_logits.detach());
    seen->push_back(routing.order);
  }
  return total;
}

// What two steps of training see: outputs, losses, routings and gradients.
std::vector<at::Tensor> two_steps(Vit& vit, bool bf16) {
  const at::Tensor images = test::random_tensor({4, 1, 8, 8}, 2, torch::kFloat).requires_grad_(true);
  std::vector<at::Tensor> seen;
  for (uint64_t step = 0; step < 2; ++step) {
    vit.zero_grad();
    at::Tensor total;
    {
      const AutocastScope autocast(bf16);
      total = forward_total(vit, images, step, &seen);
    }
    total.backward();
    seen.push_back(images.grad().clone());
    const torch::NoGradGuard no_grad;
    for (auto& p : vit.parameters()) {
      if (!p.grad().defined()) continue;
      seen.push_back(p.grad().clone());
      p.sub_(p.grad(), 0.01);
    }
  }
  return seen;
}

int64_t kept_bytes(Vit& vit) {
  const at::Tensor images = test::random_tensor({4, 1, 8, 8}, 2, torch::kFloat);
  forward_total(vit, images, 0);
  const test::LiveBytes live;
  const at::Tensor total = forward_total(vit, images, 0);
  return live.count();
}

}  // namespace

TEST(VitRecompute, ChangesNoBitOfOutputsLossesRoutingsOrGradients) {
  for (const std::vector<int64_t>& blocks : {std::vector<int64_t>{}, {1}, {0, 1, 2}})
    for (const bool bf16 : {false, true}) {
      const auto kept = two_steps(*make_vit(false, blocks), bf16), again = two_steps(*make_vit(true, blocks), bf16);
      ASSERT_EQ(kept.size(), again.size());
      for (size_t i = 0; i < kept.size(); ++i)
        EXPECT_TRUE(torch::equal(kept[i], again[i])) << blocks.size() << " MoE layers, bf16 " << bf16 << ", " << i;
    }
}

// 4 images x 5 tokens x 16 wide in fp32: a block keeps its input, and without the option at least 9 more tensors of
// that size: query, key, value, the attention's output, the sum after it, and the hidden layer, 4 times as wide; the
// last one, which computes little more than the class token, the first 3.
TEST(VitRecompute, KeepsTheInputsOfDenseBlocksOnly) {
  constexpr int64_t width = 4 * 5 * 16 * 4;
  EXPECT_GE(kept_bytes(*make_vit(false, {})) - kept_bytes(*make_vit(true, {})), (2 * 9 + 3) * width);
  EXPECT_LT(kept_bytes(*make_vit(true, {1})), kept_bytes(*make_vit(false, {1})));
}

}  // namespace sparsight::vit_recompute_test
