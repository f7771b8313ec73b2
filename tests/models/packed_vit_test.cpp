// Vision transformers with packed weights against the same models on autograd's layers.
#include <gtest/gtest.h>

#include "sparsight/core/engines.h"
#include "sparsight/models/vit.h"
#include "sparsight/nn/init.h"
#include "sparsight/nn/onednn_linear.h"
#include "tests/ops/expert_cases.h"
#include "tests/support/near.h"
#include "tests/support/thread_count.h"

namespace sparsight::packed_vit_test {
namespace {

MoeSpec spec_of(bool routed) {
  if (!routed) return {};
  return read_moe_spec({{"moe", {{"blocks", {1}}, {"experts", 4}, {"hidden", 24}}},
                        {"experts", {{"name", "mlp"}}},
                        {"capacity", Json::object()},
                        {"losses", Json::object()},
                        {"router", {{"name", "softmax_topk"}, {"k", 2}}}});
}

std::shared_ptr<Vit> vit_of(int64_t width, int64_t heads, int64_t side, bool routed, bool qkv_bias = true,
                            const std::string& pool = "class", VitOptions options = {}) {
  options.pool = pool;
  options.width = width, options.depth = 3, options.heads = heads, options.patch = 4, options.qkv_bias = qkv_bias;
  auto model = std::make_shared<Vit>(options, ModelContext{{3, side, side, 10}, spec_of(routed)});
  initialize(*model, 3);
  const torch::NoGradGuard no_grad;
  uint64_t seed = 1;
  for (at::Tensor& parameter : model->parameters())  // of order 1, so that every term counts
    parameter.add_(test::random_tensor(parameter.sizes(), seed++, torch::kFloat) *
                   (parameter.dim() > 1 ? 1 / std::sqrt(static_cast<double>(parameter.size(-1))) : 0.3));
  return model;
}

at::Tensor logits_of(Vit& model, const at::Tensor& images) {
  const torch::NoGradGuard no_grad;
  return model.forward({.images = images}).logits;
}

}  // namespace

TEST(PackedVit, HasTheLogitsOfItsLayers) {
  test::at_each_level([](const std::string& level) {
    for (const auto& [width, heads, side, routed, bias] : {std::tuple{24, 4, 8, false, true},
                                                           {30, 3, 20, false, false},
                                                           {400, 5, 12, false, true},
                                                           {24, 2, 60, true, true}}) {
      const auto model = vit_of(width, heads, side, routed, bias);
      for (const int64_t images : {1, 2, 3, 9}) {
        const at::Tensor x = test::random_tensor({images, 3, side, side}, 5, torch::kFloat).abs();
        model->pack(WeightType::fp32);
        const at::Tensor packed = logits_of(*model, x);
        const at::Tensor layers = [&] {
          return model->forward({.images = x}).logits;  // with gradients: not the packed weights
        }();
        EXPECT_TRUE(test::near(packed, layers, 1e-4)) << level << " width " << width << ", " << images << " images";
        EXPECT_FALSE(torch::equal(packed, torch::zeros_like(packed)));
      }
    }
  });
}

// The class token and the positions are written beside the packed patch embedding, unless its tokens are tapped.
TEST(PackedVit, HasTheTokensOfItsLayers) {
  for (const std::string pool : {"class", "mean"}) {
    const auto model = vit_of(24, 4, 12, false, true, pool);
    const at::Tensor x = test::random_tensor({3, 3, 12, 12}, 5, torch::kFloat).abs();
    const auto run = [&](const std::vector<std::string>& taps) { return model->forward({.images = x, .taps = taps}); };
    const ModelOutput layers = run({"patch_embed", "blocks.0"});
    model->pack(WeightType::fp32);
    const torch::NoGradGuard no_grad;
    const ModelOutput positioned = run({"blocks.0"}), tapped = run({"patch_embed", "blocks.0"});
    EXPECT_TRUE(test::near(positioned.taps.at("blocks.0"), layers.taps.at("blocks.0"), 1e-4)) << pool;
    EXPECT_TRUE(test::near(tapped.taps.at("blocks.0"), layers.taps.at("blocks.0"), 1e-4)) << pool;
    EXPECT_TRUE(test::near(tapped.taps.at("patch_embed"), layers.taps.at("patch_embed"), 1e-5)) << pool;
    EXPECT_TRUE(test::near(positioned.logits, layers.logits, 1e-4)) << pool;
  }
}

// Layer scales are part of packed weights; registers and a first norm stand before packed blocks.
TEST(PackedVit, HasTheLogitsOfItsLayersWithScalesAndRegisters) {
  for (const bool routed : {false, true})
    for (const std::string pool : {"class", "mean"})
      for (const bool no_embed_class : {false, true}) {
        VitOptions options;
        options.layer_scale = 0.7, options.reg_tokens = 3, options.pre_norm = true, options.norm_eps = 1e-3;
        options.no_embed_class = no_embed_class;
        const auto model = vit_of(24, 4, 12, routed, true, pool, options);
        const at::Tensor x = test::random_tensor({3, 3, 12, 12}, 5, torch::kFloat).abs();
        model->pack(WeightType::fp32);
        const at::Tensor packed = logits_of(*model, x), layers = model->forward({.images = x}).logits;
        EXPECT_TRUE(test::near(packed, layers, 1e-4)) << routed << pool << no_embed_class;
        EXPECT_FALSE(torch::equal(packed, layers));  // the packed weights were used
      }
}

// Few images are split by rows or, with the larger weights, by columns.
TEST(PackedVit, HasTheSameBitsForAnyNumberOfThreadsAndImages) {
  for (const int64_t width : {60, 400}) {
    SCOPED_TRACE(width);
    const auto model = vit_of(width, 5, 28, false);
    model->pack(WeightType::fp32);
    const at::Tensor x = test::random_tensor({7, 3, 28, 28}, 5, torch::kFloat).abs();
    at::Tensor alone, together;
    {
      const test::ThreadCount one(1);
      together = logits_of(*model, x);
    }
    for (const int threads : {1, 2, 4}) {
      const test::ThreadCount some(threads);
      EXPECT_TRUE(torch::equal(logits_of(*model, x), together)) << threads;
      EXPECT_TRUE(test::near(logits_of(*model, x.narrow(0, 2, 1)), together.narrow(0, 2, 1), 1e-5)) << threads;
      const at::Tensor single = logits_of(*model, x.narrow(0, 2, 1));
      if (!alone.defined()) alone = single;
      EXPECT_TRUE(torch::equal(single, alone)) << threads;
    }
  }
}

// On oneDNN fp32 weights are those of the layers, with other rounding; packed int8 has no other form.
TEST(PackedVit, OnednnReplacesPackedFp32AndNothingElse) {
  if (!has_onednn()) GTEST_SKIP() << "this libtorch lacks oneDNN";
  const auto model = vit_of(64, 4, 16, false);
  const at::Tensor x = test::random_tensor({4, 3, 16, 16}, 5, torch::kFloat).abs(), exact = logits_of(*model, x);
  const auto difference = [](const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); };
  for (const WeightType type : {WeightType::fp32, WeightType::bf16, WeightType::int8}) {
    model->pack(type);
    const at::Tensor packed = logits_of(*model, x);
    const EngineScope onednn(all_on(Engine::onednn));
    const at::Tensor others = logits_of(*model, x);  // the head is not packed
    EXPECT_FALSE(torch::equal(others, packed));
    EXPECT_LT(difference(others, packed), 1e-4);
    if (type != WeightType::fp32) {
      EXPECT_GT(difference(others, exact), 20 * difference(others, packed));
    }
  }
}

TEST(PackedVit, TrainsOnOnednnAsOnTheKernels) {
  if (!has_onednn()) GTEST_SKIP() << "this libtorch lacks oneDNN";
  const auto model = vit_of(24, 4, 8, true);
  const at::Tensor x = test::random_tensor({4, 3, 8, 8}, 5, torch::kFloat).abs();
  const auto gradients = [&] {
    model->zero_grad();
    model->forward({.images = x}).logits.square().sum().backward();
    std::vector<at::Tensor> all;
    for (const at::Tensor& p : model->parameters()) all.push_back(p.grad().clone());
    return all;
  };
  const std::vector<at::Tensor> kernels = gradients();
  const EngineScope onednn(all_on(Engine::onednn));
  const std::vector<at::Tensor> others = gradients();
  bool same = true;
  for (size_t i = 0; i < kernels.size(); ++i) {
    EXPECT_TRUE(test::near(others[i], kernels[i], 1e-4 * std::max(1.0, kernels[i].abs().max().item<double>())));
    same = same && torch::equal(others[i], kernels[i]);
  }
  EXPECT_FALSE(same);
}

// bf16 keeps 8 bits of a weight, int8 7 bits of the largest of an output.
TEST(PackedVit, FewerBitsPerWeightChangeLogitsALittle) {
  const auto model = vit_of(64, 4, 16, false);
  const at::Tensor x = test::random_tensor({4, 3, 16, 16}, 5, torch::kFloat).abs(), exact = logits_of(*model, x);
  const double scale = exact.abs().max().item<double>();
  for (const auto& [type, share] : {std::pair{WeightType::bf16, 0.02}, {WeightType::int8, 0.05}}) {
    model->pack(type);
    const at::Tensor packed = logits_of(*model, x);
    EXPECT_TRUE(test::near(packed, exact, share * scale));
    EXPECT_FALSE(torch::equal(packed, exact));
  }
}

TEST(PackedVit, FollowsWeightsThatChangeLater) {
  const auto model = vit_of(24, 4, 8, false);
  model->pack(WeightType::fp32);
  const at::Tensor x = test::random_tensor({2, 3, 8, 8}, 5, torch::kFloat).abs(), before = logits_of(*model, x);
  {
    const torch::NoGradGuard no_grad;
    for (const auto& item : model->named_parameters())
      if (item.key() == "blocks.1.mlp.fc2.weight") item.value().mul_(2);
  }
  const at::Tensor after = logits_of(*model, x);
  EXPECT_FALSE(torch::allclose(after, before, 1e-3, 1e-3));
  EXPECT_TRUE(test::near(after, model->forward({.images = x}).logits, 1e-4));
}

}  // namespace sparsight::packed_vit_test
