// The patch CNN against plain loops over the paper's sums, and its gradients against the paper's formulas.
#include "sparsight/models/patch_cnn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "sparsight/nn/patches.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"
#include "tests/support/random_tensor.h"

namespace sparsight::patch_cnn_test {

constexpr int64_t kSide = 8, kPatch = 2, kN = 16, kD = 4;

struct Shape {
  int64_t experts = 2, taken = 3, classes = 2;
  std::string gate = "ones", average = "taken";
  std::vector<int64_t> blocks = {0};
};

std::shared_ptr<PatchCnn> build_model(const Shape& s) {
  MoeSpec spec = read_moe_spec(
      {{"moe", {{"blocks", s.blocks}, {"experts", s.experts}, {"hidden", 5}}},
       {"experts", {{"name", "conv"}, {"channels", 1}, {"output", "normal"}, {"init_std", 0.5}}},
       {"capacity", Json::object()},
       {"losses", Json::object()},
       {"router", {{"name", "patch_choice"}, {"patches", s.taken}, {"gate", s.gate}, {"init_std", 0.5}}}});
  PatchCnnOptions options;
  options.patch = kPatch;
  options.average = s.average;
  auto model = std::make_shared<PatchCnn>(options, ModelContext{{1, kSide, kSide, s.classes}, spec});
  initialize(*model, 1);
  model->to(torch::kDouble);
  return model;
}

at::Tensor pictures(int64_t count) { return test::random_tensor({count, 1, kSide, kSide}, 3, torch::kDouble); }

// Equations 1, 5 and 23 as they stand there: f_i, one image and class after the other.
at::Tensor by_loops(PatchCnn& model, const Shape& s, const at::Tensor& images) {
  const auto named = [&](const std::string& name) {
    const auto parameters = model.named_parameters();
    return parameters.contains(name) ? parameters[name] : model.named_buffers()[name];
  };
  const at::Tensor w = named("moe.router.weight"), w1 = named("moe.experts.w1"), a = named("moe.experts.w2");
  const int64_t outputs = s.classes == 2 ? 1 : s.classes, hidden = w1.size(2);
  at::Tensor f = torch::zeros({images.size(0), outputs}, torch::kDouble);
  for (int64_t b = 0; b < images.size(0); ++b)
    for (int64_t e = 0; e < s.experts; ++e) {
      std::vector<at::Tensor> x;
      std::vector<double> g;
      for (int64_t j = 0; j < kN; ++j) {
        const int64_t row = j / 4 * kPatch, column = j % 4 * kPatch;
        x.push_back(images[b][0].narrow(0, row, kPatch).narrow(1, column, kPatch).reshape({kD}));
        g.push_back(w[e].dot(x.back()).item<double>());
      }
      std::vector<int64_t> order(kN);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return g[i] > g[j]; });
      double all = 0, chosen = 0;
      for (int64_t j = 0; j < kN; ++j) all += std::exp(g[j]);
      for (int64_t t = 0; t < s.taken; ++t) chosen += std::exp(g[order[t]]);
      for (int64_t t = 0; t < s.taken; ++t) {
        const int64_t j = order[t];
        const double gate = s.gate == "ones" ? 1 : std::exp(g[j]) / (s.gate == "topl_softmax" ? chosen : all);
        for (int64_t r = 0; r < hidden; ++r) {
          const double neuron = std::max(0.0, w1[e].select(1, r).dot(x[j]).item<double>());
          f[b] += a[e][r] * neuron * gate / static_cast<double>(s.average == "taken" ? s.taken : kN);
        }
      }
    }
  return f;
}

at::Tensor answer(PatchCnn& model, const at::Tensor& images) {
  return model.forward({images, ForwardMode::training(), {1, 0}}).logits;
}

void expect_close(const at::Tensor& a, const at::Tensor& b, double tolerance = 1e-10) {
  ASSERT_EQ(a.sizes(), b.sizes());
  EXPECT_LT((a - b).abs().max().item<double>(), tolerance);
}

TEST(Patches, P1_ImagesAreCutAndPutTogetherWithoutLoss) {
  const at::Tensor images = test::random_tensor({2, 3, 6, 8}, 1, torch::kDouble);
  const at::Tensor patches = image_patches(images, 2);
  EXPECT_EQ(patches.sizes(), at::IntArrayRef({2, 12, 12}));
  // Patch 6 is row 1, column 2 of 3 x 4; number 7 of it channel 1, row 1, column 1.
  EXPECT_EQ(patches[1][6][7].item<double>(), images[1][1][3][5].item<double>());
  EXPECT_TRUE(patches_to_images(patches, 2, 6, 8).equal(images));
}

TEST(PatchCnn, P5_P6_P8_P9_FollowsTheSumsOfThePaper) {
  for (const char* gate : {"ones", "topl_softmax", "softmax_topl"})
    for (const int64_t classes : {2, 3})
      for (const char* average : {"taken", "all"}) {
        const Shape s{3, 5, classes, gate, average, {0}};
        const auto model = build_model(s);
        const at::Tensor images = pictures(4), f = by_loops(*model, s, images), logits = answer(*model, images);
        if (classes == 2)
          expect_close(logits, torch::cat({torch::zeros_like(f), f}, 1));
        else
          expect_close(logits, f);
      }
}

std::shared_ptr<PatchCnn> with_router(const Json& router, int64_t experts, int64_t classes) {
  const MoeSpec spec =
      read_moe_spec({{"moe", {{"blocks", {0}}, {"experts", experts}, {"hidden", 5}}},
                     {"experts", {{"name", "conv"}, {"channels", 1}, {"output", "normal"}, {"init_std", 0.5}}},
                     {"capacity", Json::object()},
                     {"losses", Json::object()},
                     {"router", router}});
  PatchCnnOptions options;
  options.patch = kPatch;
  auto model = std::make_shared<PatchCnn>(options, ModelContext{{1, kSide, kSide, classes}, spec});
  initialize(*model, 1);
  model->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  for (auto& p : model->named_parameters())
    if (p.key().find("router") != std::string::npos) p.value().copy_(test::random_tensor(p.value().sizes(), 8) * 0.5);
  return model;
}

// Patches that choose experts, in the paper's sum: each of 16 patches goes to its best 3 of 5 experts, so that an
// expert takes 3 * 16 / 5 = 9.6 patches of an image on average, the l of the factor 1/l.
TEST(PatchCnn, P78_PatchesMayChooseTheExperts) {
  const auto model = with_router({{"name", "softmax_topk"}, {"k", 3}, {"noise", 0}}, 5, 3);
  const at::Tensor images = pictures(4), x = image_patches(images, kPatch);
  const auto p = model->named_parameters();
  const at::Tensor w1 = p["moe.experts.w1"], a = model->named_buffers()["moe.experts.w2"],
                   gates = torch::softmax(x.matmul(p["moe.router.weight"].t()), 2);  // [B,S,E]
  at::Tensor f = torch::zeros({4, 3}, torch::kDouble);
  for (int64_t b = 0; b < 4; ++b)
    for (int64_t j = 0; j < kN; ++j) {
      const at::Tensor best = std::get<1>(gates[b][j].topk(3));
      for (int64_t t = 0; t < 3; ++t) {
        const auto e = best[t].item<int64_t>();
        f[b] += gates[b][j][e] * torch::relu(x[b][j].matmul(w1[e])).matmul(a[e]) / 9.6;
      }
    }
  expect_close(model->forward({images, ForwardMode::evaluation()}).logits, f);
}

// Where the numbers of patches vary, an image's own number counts: its answer is the same alone and in a batch.
TEST(PatchCnn, AnImagesAnswerDoesNotDependOnItsBatch) {
  for (const Json& router : {Json{{"name", "top_p"}, {"p", 0.6}}, Json{{"name", "relu"}},
                             Json{{"name", "expert_choice"}, {"pool", "image"}}, Json{{"name", "switch_top1"}}}) {
    const auto model = with_router(router, 5, 2);
    const at::Tensor images = pictures(6) * torch::arange(1, 7, torch::kDouble).view({6, 1, 1, 1}).square() * 0.3;
    const at::Tensor together = model->forward({images, ForwardMode::evaluation()}).logits;
    for (int64_t b = 0; b < 6; ++b)
      expect_close(model->forward({images.narrow(0, b, 1), ForwardMode::evaluation()}).logits,
                   together.narrow(0, b, 1));
  }
}

// Equation 5.
TEST(PatchCnn, P7_TheCnnIsOneExpertThatTakesAll) {
  const auto routed = build_model({1, kN, 2, "ones", "taken"}), plain = build_model({1, kN, 2, "ones", "taken", {}});
  const at::Tensor images = pictures(3), x = image_patches(images, kPatch);
  const at::Tensor w = routed->named_parameters()["moe.experts.w1"], a = routed->named_buffers()["moe.experts.w2"];
  const at::Tensor f = torch::relu(x.matmul(w[0])).mean(1).matmul(a[0]);  // (1/n) sum over patches
  expect_close(answer(*routed, images).select(1, 1), f.squeeze(1));
  {
    const torch::NoGradGuard no_grad;
    plain->named_parameters()["filters.w1"].copy_(w);
    plain->named_buffers()["filters.w2"].copy_(a);
  }
  expect_close(answer(*plain, images), answer(*routed, images), 1e-14);
  EXPECT_TRUE(plain->forward({images, ForwardMode::training()}).routings.empty());
}

// Equations 13 and 19: -y a v (1/l) sum of G x over the patches taken whose neuron is active.
TEST(PatchCnn, P11_GradientsOfTheFiltersAreThoseOfThePaper) {
  for (const char* gate : {"ones", "topl_softmax"}) {
    const Shape s{2, 3, 2, gate, "taken", {0}};
    const auto model = build_model(s);
    const at::Tensor images = pictures(1), label = torch::ones({1}, torch::kLong);
    const ModelOutput out = model->forward({images, ForwardMode::training(), {1, 0}});
    torch::cross_entropy_loss(out.logits, label).backward();
    const double f = out.logits[0][1].item<double>(), v = 1 / (1 + std::exp(f));  // y = +1
    const Routing& routing = out.routings[0];
    const at::Tensor w1 = model->named_parameters()["moe.experts.w1"], a = model->named_buffers()["moe.experts.w2"],
                     x = image_patches(images, kPatch)[0];
    at::Tensor expected = torch::zeros_like(w1);
    for (int64_t i = 0; i < routing.token.size(0); ++i) {
      const auto e = routing.expert[i].item<int64_t>();
      const at::Tensor patch = x[routing.token[i].item<int64_t>()];
      const at::Tensor active = (patch.matmul(w1[e]) > 0).to(torch::kDouble);  // [F]
      expected[e] -= v / 3 * routing.gate[i].detach() * torch::outer(patch, active * a[e].squeeze(1));
    }
    expect_close(w1.grad(), expected);
  }
}

// Equation 26 in its short form: -(y v / l) sum of u_j G_j (x_j - x mean), the mean weighted with the gates.
TEST(PatchCnn, P12_GradientOfTheRouterIsThatOfThePaper) {
  const Shape s{2, 3, 2, "topl_softmax", "taken", {0}};
  const auto model = build_model(s);
  const at::Tensor images = pictures(1), label = torch::zeros({1}, torch::kLong);
  const ModelOutput out = model->forward({images, ForwardMode::training(), {1, 0}});
  torch::cross_entropy_loss(out.logits, label).backward();
  const double f = out.logits[0][1].item<double>(), v = 1 / (1 + std::exp(-f));  // y = -1
  const Routing& routing = out.routings[0];
  const auto parameters = model->named_parameters();
  const at::Tensor w1 = parameters["moe.experts.w1"], a = model->named_buffers()["moe.experts.w2"],
                   x = image_patches(images, kPatch)[0], gate = routing.gate.detach();
  at::Tensor expected = torch::zeros({2, kD}, torch::kDouble);
  for (int64_t e = 0; e < 2; ++e) {
    at::Tensor mean = torch::zeros({kD}, torch::kDouble);
    for (int64_t i = 0; i < routing.token.size(0); ++i)
      if (routing.expert[i].item<int64_t>() == e) mean += gate[i] * x[routing.token[i].item<int64_t>()];
    for (int64_t i = 0; i < routing.token.size(0); ++i) {
      if (routing.expert[i].item<int64_t>() != e) continue;
      const at::Tensor patch = x[routing.token[i].item<int64_t>()];
      const at::Tensor u = torch::relu(patch.matmul(w1[e])).dot(a[e].squeeze(1));
      expected[e] += v / 3 * u * gate[i] * (patch - mean);
    }
  }
  expect_close(parameters["moe.router.weight"].grad(), expected.detach());
}

TEST(PatchCnn, P11_P13_P14_GradientsFollowDifferences) {
  for (const char* gate : {"topl_softmax", "softmax_topl"})
    for (const int64_t classes : {2, 3}) {
      const auto model = build_model({2, 4, classes, gate, "taken"});
      const at::Tensor images = pictures(3), labels = torch::arange(3, torch::kLong) % classes;
      const auto loss = [&] { return torch::cross_entropy_loss(answer(*model, images), labels); };
      EXPECT_LT(test::gradient_error(loss, model->parameters(), 1e-6), 1e-6) << gate << " " << classes;
    }
}

TEST(PatchCnn, P10_OutputWeightsAreFixed) {
  const auto model = build_model({});
  EXPECT_FALSE(model->named_parameters().contains("moe.experts.w2"));
  EXPECT_TRUE(model->named_buffers().contains("moe.experts.w2"));
}

TEST(PatchCnn, P79_SizesThatDoNotFitAreErrors) {
  PatchCnnOptions options;
  options.patch = 3;
  EXPECT_NE(testing::error_text([&] {
              PatchCnn({options}, {{1, 8, 8, 2}, default_moe_spec()});
            }).find("patch = 3 does not divide images of 8x8"),
            std::string::npos);
  const MoeSpec twelve = read_moe_spec({{"moe", {{"blocks", {0}}, {"experts", 12}}},
                                        {"experts", {{"name", "conv"}}},
                                        {"capacity", Json::object()},
                                        {"losses", Json::object()},
                                        {"router", {{"name", "patch_choice"}}}});
  EXPECT_NE(testing::error_text([&] {
              PatchCnn(PatchCnnOptions{}, {{1, 8, 8, 2}, twelve});
            }).find("40 filters cannot be divided evenly among 12 experts"),
            std::string::npos);
  const auto model = build_model({2, kN + 1, 2, "ones", "taken"});
  EXPECT_NE(
      testing::error_text([&] { answer(*model, pictures(1)); }).find("takes 17 patches but an image has 16 patches"),
      std::string::npos);
}

}  // namespace sparsight::patch_cnn_test
