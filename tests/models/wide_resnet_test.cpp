// The wide residual network and WRN-pMoE: tables of layers, counts of parameters, gradients.
#include "sparsight/models/wide_resnet.h"

#include <gtest/gtest.h>

#include "sparsight/moe/experts/norm_conv_experts.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"
#include "tests/support/random_tensor.h"

namespace sparsight::wide_resnet_test {

struct Shape {
  int64_t side = 64, classes = 2, widen = 10, depth = 10;
  int64_t experts = 0, taken = 2, patch = 4, kernel = 3;  // no experts: the dense network
  std::string path = "dense", gate = "softmax_topl";
  bool debias = true;
};

std::shared_ptr<WideResnet> build_model(const Shape& s) {
  const MoeSpec spec = read_moe_spec({{"moe",
                                       {{"blocks", s.experts > 0 ? std::vector<int64_t>{-1} : std::vector<int64_t>{}},
                                        {"experts", std::max<int64_t>(1, s.experts)}}},
                                      {"experts",
                                       {{"name", "norm_conv"},
                                        {"channels", 64 * s.widen},
                                        {"kernel", s.kernel},
                                        {"path", s.path},
                                        {"debias", s.debias}}},
                                      {"capacity", Json::object()},
                                      {"losses", Json::object()},
                                      {"router", {{"name", "patch_choice"}, {"patches", s.taken}, {"gate", s.gate}}}});
  WideResnetOptions options;
  options.depth = s.depth;
  options.widen = s.widen;
  options.patch = s.patch;
  options.norm_debias = s.debias;
  auto model = std::make_shared<WideResnet>(options, ModelContext{{3, s.side, s.side, s.classes}, spec});
  initialize(*model, 1);
  return model;
}

int64_t parameters(const torch::nn::Module& model) {
  int64_t count = 0;
  for (const at::Tensor& p : model.parameters()) count += p.numel();
  return count;
}

const Shape kFaces{.experts = 8},
    kPictures{.side = 32, .classes = 10, .experts = 4, .taken = 16, .patch = 1, .kernel = 1};

Shape with_classes(Shape s, int64_t classes) {
  s.classes = classes;
  return s;
}

TEST(WideResnet, P26_P27_P28_HasThePapersNumbersOfParameters) {
  EXPECT_EQ(parameters(*build_model({})), 7432961);
  EXPECT_EQ(parameters(*build_model({.classes = 4})), 7434884);
  EXPECT_EQ(parameters(*build_model({.side = 32, .classes = 10})), 7438730);
  EXPECT_EQ(parameters(*build_model(kFaces)), 7318401);
  EXPECT_EQ(parameters(*build_model(with_classes(kFaces, 4))), 7320324);
  EXPECT_EQ(parameters(*build_model(kPictures)), 3962890);
  EXPECT_EQ(parameters(*build_model(with_classes(kPictures, 4))), 3959044);
}

TEST(WideResnet, P26_P27_HasThePapersLayers) {
  const auto dense = build_model({})->named_parameters(), routed = build_model(kFaces)->named_parameters();
  const auto sizes = [](const auto& parameters, const std::string& name) { return parameters[name].sizes().vec(); };
  using Sizes = std::vector<int64_t>;
  EXPECT_EQ(sizes(dense, "stem.weight"), (Sizes{16, 3, 3, 3}));
  EXPECT_EQ(sizes(dense, "groups.0.0.norm1.weight"), (Sizes{16}));
  EXPECT_EQ(sizes(dense, "groups.0.0.shortcut.weight"), (Sizes{160, 16, 1, 1}));
  EXPECT_EQ(sizes(dense, "groups.1.0.conv1.weight"), (Sizes{320, 160, 3, 3}));
  EXPECT_EQ(sizes(dense, "groups.2.0.conv2.weight"), (Sizes{640, 640, 3, 3}));
  EXPECT_EQ(sizes(dense, "head.weight"), (Sizes{1, 640}));
  EXPECT_EQ(sizes(routed, "groups.2.0.conv1.weight"), (Sizes{640, 320, 3, 3}));
  EXPECT_EQ(sizes(routed, "groups.2.0.moe.router.weight"), (Sizes{8, 10240}));
  EXPECT_EQ(sizes(routed, "groups.2.0.moe.experts.w1"), (Sizes{8, 5760, 80}));
  EXPECT_EQ(sizes(routed, "groups.2.0.moe.experts.norm_weight"), (Sizes{8, 640}));
  for (const char* gone : {"groups.2.0.shortcut.weight", "groups.2.0.conv2.weight", "groups.2.0.norm2.weight"})
    EXPECT_FALSE(routed.contains(gone)) << gone;
}

// The second block of a group adds its input unchanged.
TEST(WideResnet, DeeperNetworksHaveOneConvolvedShortcutInEachGroup) {
  const auto model = build_model({.side = 16, .widen = 1, .depth = 16, .experts = 4, .patch = 2});
  int64_t shortcuts = 0;
  for (const auto& p : model->named_parameters()) shortcuts += p.key().find("shortcut.weight") != std::string::npos;
  EXPECT_EQ(shortcuts, 3);
  EXPECT_TRUE(model->named_parameters().contains("groups.2.1.moe.router.weight"));
  EXPECT_TRUE(model->named_parameters().contains("groups.2.0.conv2.weight"));
  EXPECT_EQ(model->forward({torch::zeros({2, 3, 16, 16}), ForwardMode::training()}).logits.sizes(),
            at::IntArrayRef({2, 2}));
}

// A block by hand, from the names of its parameters.
TEST(WideResnet, ABlockNormalisesFirstAndShortcutsItsRawInput) {
  WideResnetOptions options;
  WideBlock block({2, 3, 2, true}, options);
  initialize(block, 1);
  const auto p = block.named_parameters();
  const at::Tensor x = test::random_tensor({2, 2, 4, 4}, 1, torch::kFloat);
  const double scale = 1 / std::sqrt(1 + 1e-3);  // running mean 0, variance 1
  const auto padded = [](const at::Tensor& t) { return at::constant_pad_nd(t, {0, 1, 0, 1}); };
  at::Tensor u = at::conv2d(padded(at::relu(x * scale)), p["conv1.weight"], p["conv1.bias"], 2);
  u = at::conv2d(at::relu(u * scale), p["conv2.weight"], p["conv2.bias"], 1, 1);
  const at::Tensor shortcut = at::conv2d(x, p["shortcut.weight"], p["shortcut.bias"], 2);
  EXPECT_TRUE(torch::allclose(block.forward(x, ForwardMode::evaluation()), shortcut + u, 1e-5, 1e-6));
}

TEST(WideResnet, ReturnsTheRoutingOfItsPatches) {
  const auto model = build_model({.side = 32, .widen = 1, .experts = 8, .taken = 2, .patch = 2});
  const ModelOutput out =
      model->forward({test::random_tensor({3, 3, 32, 32}, 1, torch::kFloat), ForwardMode::training(), {1, 0}});
  EXPECT_EQ(out.logits.sizes(), at::IntArrayRef({3, 2}));
  EXPECT_EQ(out.logits.select(1, 0).abs().max().item<double>(), 0);
  ASSERT_EQ(out.routings.size(), 1u);
  const Routing& r = out.routings[0];
  EXPECT_EQ(r.layer, "groups.2.0.moe");
  EXPECT_EQ(r.layout.per_image, 16);  // 8 x 8 positions, patches of 2 x 2
  EXPECT_EQ(r.layout.grid_height, 4);
  EXPECT_TRUE(torch::equal(r.chosen_count, torch::full({8}, 2 * 3, torch::kLong)));
}

TEST(WideResnet, P31_TheWholeNetworkLearnsTogether) {
  for (const char* path : {"dense", "gathered"}) {
    const auto model = build_model({.side = 32, .widen = 1, .experts = 8, .patch = 2, .path = path});
    const at::Tensor images = test::random_tensor({8, 3, 32, 32}, 1, torch::kFloat);
    const at::Tensor before = model->named_parameters()["groups.2.0.moe.router.weight"].clone();
    torch::cross_entropy_loss(model->forward({images, ForwardMode::training(), {1, 0}}).logits,
                              torch::arange(8, torch::kLong) % 2)
        .backward();
    const torch::NoGradGuard no_grad;
    for (const char* name : {"stem.weight", "groups.2.0.moe.router.weight", "groups.2.0.moe.experts.w1",
                             "groups.2.0.moe.experts.norm_weight", "head.weight"}) {
      at::Tensor p = model->named_parameters()[name];
      EXPECT_GT(p.grad().abs().max().item<double>(), 0) << path << " " << name;
      p.sub_(p.grad(), 0.1);
    }
    EXPECT_FALSE(torch::equal(model->named_parameters()["groups.2.0.moe.router.weight"], before));
  }
}

// Gates of 1/64 leave the experts' norms a variance far below 1, the start of Keras's running averages. After batches
// that are all the same, evaluation must give what training gives (but for the unbiased variances of few values).
TEST(WideResnet, EvaluatesAsItTrainsFromTheFirstBatchesOn) {
  for (const bool debias : {true, false}) {
    const auto model = build_model(
        {.side = 32, .classes = 10, .widen = 1, .experts = 4, .taken = 16, .patch = 1, .kernel = 1, .debias = debias});
    const torch::NoGradGuard no_grad;
    const at::Tensor images = test::random_tensor({16, 3, 32, 32}, 1, torch::kFloat);
    at::Tensor trained;
    for (int i = 0; i < 3; ++i) trained = model->forward({images, ForwardMode::training(), {1, 0}}).logits;
    const at::Tensor evaluated = model->forward({images, ForwardMode::evaluation()}).logits;
    const double difference = ((evaluated - trained).norm() / trained.norm()).item<double>();
    if (debias)
      EXPECT_LT(difference, 0.01);
    else
      EXPECT_GT(difference, 0.5);
  }
}

// Training with frozen batch norm is one line of the mode: nothing moves the running averages, and weights still learn.
TEST(WideResnet, TrainsWithFrozenBatchNorm) {
  const auto model = build_model({.side = 32, .widen = 1});
  const at::Tensor images = test::random_tensor({8, 3, 32, 32}, 1, torch::kFloat);
  const auto averages = [&] {
    std::vector<at::Tensor> all;
    for (const auto& b : model->named_buffers())
      if (b.key().ends_with("running_mean")) all.push_back(b.value().clone());
    return at::cat(all);
  };
  const at::Tensor start = averages();
  ForwardMode mode = ForwardMode::training();
  mode.batch_statistics = false;
  model->forward({images, mode, {1, 0}}).logits.square().sum().backward();
  EXPECT_TRUE(torch::equal(averages(), start));
  EXPECT_GT(model->named_parameters()["groups.1.0.norm1.weight"].grad().abs().max().item<double>(), 0);
  model->forward({images, ForwardMode::training(), {1, 0}});
  EXPECT_FALSE(torch::equal(averages(), start));
}

// Small tensors at both ends of the network, in the middle and in the router, through all that lies above them.
TEST(WideResnet, P14_P30_GradientsFollowDifferences) {
  for (const char* path : {"dense", "gathered"})
    for (const char* gate : {"topl_softmax", "softmax_topl"}) {
      const auto model = build_model(
          {.side = 8, .classes = 3, .widen = 1, .experts = 2, .taken = 2, .patch = 1, .path = path, .gate = gate});
      model->to(torch::kDouble);
      const auto p = model->named_parameters();
      {
        const torch::NoGradGuard no_grad;
        p["groups.2.0.moe.router.weight"].copy_(test::random_tensor({2, 64}, 4) * 0.3);
      }
      const at::Tensor images = test::random_tensor({3, 3, 8, 8}, 1), labels = torch::arange(3, torch::kLong);
      const auto loss = [&] {
        return torch::cross_entropy_loss(model->forward({images, ForwardMode::training(), {1, 0}}).logits, labels);
      };
      const std::vector<at::Tensor> inputs{
          p["groups.0.0.norm1.weight"],          p["groups.1.0.norm2.bias"], p["groups.2.0.moe.router.weight"],
          p["groups.2.0.moe.experts.norm_bias"], p["norm.weight"],           p["head.weight"]};
      EXPECT_LT(test::gradient_error(loss, inputs, 1e-7), 1e-5) << path << " " << gate;
    }
}

TEST(WideResnet, SizesThatDoNotFitAreErrors) {
  EXPECT_NE(testing::error_text<UsageError>([] {
              build_model({.depth = 12});
            }).find("depth must be 6 n + 4 (10, 16, 22, 28, ...), got 12"),
            std::string::npos);
  EXPECT_NE(testing::error_text<UsageError>([] {
              build_model({.widen = 1, .experts = 8, .patch = 3});
            }).find("patch = 3 does not divide the feature map of 16x16"),
            std::string::npos);
}

}  // namespace sparsight::wide_resnet_test
