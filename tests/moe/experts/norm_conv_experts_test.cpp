// The experts of WRN-pMoE against plain loops over experts and patches, by both of their paths.
#include "sparsight/moe/experts/norm_conv_experts.h"

#include <gtest/gtest.h>

#include "sparsight/moe/register_moe.h"
#include "sparsight/moe/routers/patch_choice.h"
#include "sparsight/nn/patches.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"
#include "tests/support/random_tensor.h"

namespace sparsight::norm_conv_test {

// Feature maps of 3 channels and 4 x 4 positions, patches of 2 x 2, 2 experts of 3 filters each.
constexpr int64_t kB = 3, kC = 3, kSide = 2, kGrid = 2, kS = kGrid * kGrid, kD = kC * kSide * kSide, kE = 2, kF = 3;
constexpr int64_t kTaken = 2, kOut = kE * kF * kSide * kSide;

std::shared_ptr<NormConvExperts> make(Json settings) {
  settings["channels"] = kC;
  auto experts = std::dynamic_pointer_cast<NormConvExperts>(
      expert_kinds().make("norm_conv", settings, "experts", ExpertShape{kE, kD, 0, kOut}));
  initialize(*experts, 1);
  experts->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  for (auto& p : experts->named_parameters()) p.value().add_(test::random_tensor(p.value().sizes(), 5) * 0.3);
  experts->running_mean.add_(0.2);
  return experts;
}

ExpertContext make_context(bool training) { return {training ? ForwardMode::training() : ForwardMode::evaluation()}; }

at::Tensor tokens() { return test::random_tensor({kB * kS, kD}, 2); }

Routing route(const at::Tensor& logits, const std::string& gate = "softmax_topl") {
  PatchChoiceOptions options;
  options.patches = kTaken;
  options.gate = gate;
  Routing routing = route_patch_choice(logits, {}, kB, options);
  routing.layout = {kB, kS, 0, kGrid, kGrid};
  return routing;
}

at::Tensor logits() { return test::random_tensor({kB * kS, kE}, 3); }

// As described in the paper: one norm for each expert and channel, over all of `maps`.
at::Tensor norm_relu(const NormConvExperts& experts, const at::Tensor& maps, int64_t e, bool training) {
  const auto channel = [](const at::Tensor& of_channel) { return of_channel.view({1, kC, 1, 1}); };
  const at::Tensor mean = training ? maps.mean({0, 2, 3}) : experts.running_mean[e],
                   var = training ? maps.var({0, 2, 3}, false) : experts.running_var[e];
  return torch::relu((maps - channel(mean)) / torch::sqrt(channel(var) + 1e-3) * channel(experts.norm_weight[e]) +
                     channel(experts.norm_bias[e]));
}

at::Tensor convolved(const NormConvExperts& experts, const at::Tensor& maps, int64_t e, int64_t kernel) {
  return at::conv2d(maps, experts.w1[e].t().reshape({kF, kC, kernel, kernel}), experts.b1[e], 1, kernel / 2);
}

// Image, position and gate of each patch that expert e took.
struct Taken {
  int64_t image, position;
  double gate;
};
std::vector<Taken> taken_by(const Routing& routing, int64_t e) {
  std::vector<Taken> all;
  for (int64_t i = 0; i < routing.token.size(0); ++i)
    if (routing.expert[i].item<int64_t>() == e) {
      const auto token = routing.token[i].item<int64_t>();
      all.push_back({token / kS, token % kS, routing.gate[i].item<double>()});
    }
  return all;
}

void expect_close(const at::Tensor& a, const at::Tensor& b) {
  ASSERT_EQ(a.sizes(), b.sizes());
  EXPECT_LT((a - b).abs().max().item<double>(), 1e-10);
}

TEST(NormConvExperts, P30_DenseIsTheMaskedMapOfThePapersCode) {
  for (const int64_t kernel : {1, 3})
    for (const bool training : {true, false}) {
      const auto experts = make({{"path", "dense"}, {"kernel", kernel}});
      const Routing routing = route(logits());
      const at::Tensor maps = patches_to_images(tokens().view({kB, kS, kD}), kSide, 4, 4);
      std::vector<at::Tensor> expected;
      for (int64_t e = 0; e < kE; ++e) {
        at::Tensor mask = torch::zeros({kB, 1, 4, 4}, torch::kDouble);
        for (const Taken& t : taken_by(routing, e))
          mask[t.image][0].narrow(0, t.position / kGrid * kSide, kSide).narrow(1, t.position % kGrid * kSide, kSide) =
              t.gate;
        expected.push_back(convolved(*experts, norm_relu(*experts, maps * mask, e, training), e, kernel));
      }
      const at::Tensor out = experts->apply_routing(tokens(), routing, make_context(training));
      expect_close(patches_to_images(out.view({kB, kS, kOut}), kSide, 4, 4), torch::cat(expected, 1));
    }
}

TEST(NormConvExperts, P30_GatheredConvolvesThePatchesTakenEachByItself) {
  for (const char* gate : {"input", "output"})
    for (const bool training : {true, false}) {
      const auto experts = make({{"path", "gathered"}, {"gate", gate}});
      const Routing routing = route(logits());
      const bool before = std::string(gate) == "input";
      const at::Tensor patches = tokens().view({kB, kS, kC, kSide, kSide});
      at::Tensor expected = torch::zeros({kB, kS, kE * kF, kSide, kSide}, torch::kDouble);
      for (int64_t e = 0; e < kE; ++e) {
        const auto taken = taken_by(routing, e);
        std::vector<at::Tensor> rows;
        for (const Taken& t : taken) rows.push_back(patches[t.image][t.position] * (before ? t.gate : 1));
        const at::Tensor ready = norm_relu(*experts, torch::stack(rows), e, training);
        for (size_t i = 0; i < taken.size(); ++i)
          expected[taken[i].image][taken[i].position].narrow(0, e * kF, kF) =
              convolved(*experts, ready.narrow(0, static_cast<int64_t>(i), 1), e, 3)[0] * (before ? 1 : taken[i].gate);
      }
      expect_close(experts->apply_routing(tokens(), routing, make_context(training)), expected.view({kB * kS, kOut}));
    }
}

// With a 1x1 kernel nothing crosses borders: the paths differ only in their output for patches that were not taken, and
// in the input of their norms in training.
TEST(NormConvExperts, PathsAgreeOnPatchesTakenWithOneByOneKernels) {
  const auto dense = make({{"path", "dense"}, {"kernel", 1}}), gathered = make({{"kernel", 1}});
  const Routing routing = route(logits());
  const at::Tensor a = dense->apply_routing(tokens(), routing).view({kB, kS, kE, -1}),
                   b = gathered->apply_routing(tokens(), routing).view({kB, kS, kE, -1});
  at::Tensor taken = torch::zeros({kB, kS, kE, 1}, torch::kDouble);
  for (int64_t e = 0; e < kE; ++e)
    for (const Taken& t : taken_by(routing, e)) taken[t.image][t.position][e] = 1;
  expect_close(a * taken, b);
  EXPECT_EQ((b * (1 - taken)).abs().max().item<double>(), 0);
}

// All parameters, the tokens and, through the gates, the router's logits.
TEST(NormConvExperts, P14_P30_GradientsFollowDifferences) {
  for (const char* path : {"dense", "gathered"})
    for (const char* gate : {"topl_softmax", "softmax_topl"})
      for (const bool training : {true, false}) {
        const auto experts = make({{"path", path}, {"activation", "gelu"}});
        const at::Tensor x = tokens(), scores = logits(), upstream = test::random_tensor({kB * kS, kOut}, 7) * 0.1;
        std::vector<at::Tensor> inputs = experts->parameters();
        inputs.push_back(x);
        inputs.push_back(scores);
        const auto loss = [&] {
          return (experts->apply_routing(x, route(scores, gate), make_context(training)) * upstream).sum();
        };
        EXPECT_LT(test::gradient_error(loss, inputs, 1e-6), 1e-6) << path << " " << gate << " " << training;
      }
}

TEST(NormConvExperts, RunningAveragesMoveInTrainingOnly) {
  for (const char* path : {"dense", "gathered"})
    for (const bool training : {true, false}) {
      const auto experts = make({{"path", path}});
      const at::Tensor before = experts->running_mean.clone();
      experts->apply_routing(tokens(), route(logits()), make_context(training));
      EXPECT_EQ(torch::equal(experts->running_mean, before), !training) << path;
    }
}

// Each expert counts the batches in which it had rows. tokens() all go to expert 1 first, so that expert 0 begins with
// the second batch.
TEST(NormConvExperts, AnExpertsRunningAveragesBeginWithItsFirstRows) {
  const auto experts = make({});
  const auto step = [&](const at::Tensor& x, int64_t expert) {
    const int64_t rows = x.size(0);
    experts->forward(x, torch::tensor({int64_t{0}, expert == 0 ? rows : 0, rows}, torch::kLong),
                     {ForwardMode::training()});
  };
  const auto channel_mean = [&](const at::Tensor& x) {
    return x.view({-1, kC, kSide * kSide}).mean(at::IntArrayRef{0, 2});
  };
  step(tokens(), 1);
  expect_close(experts->running_mean[1], channel_mean(tokens()));
  EXPECT_EQ(experts->running_mean[0][0].item<double>(), 0.2);  // untouched, as make() left it
  step(tokens() * 3, 0);
  expect_close(experts->running_mean[0], channel_mean(tokens()) * 3);
  EXPECT_EQ(experts->batches[0].item<int64_t>(), 1);
  EXPECT_EQ(experts->batches[1].item<int64_t>(), 1);
}

TEST(NormConvExperts, WhatDoesNotFitIsRefused) {
  EXPECT_NE(testing::error_text<UsageError>([] {
              NormConvExperts(NormConvExpertsOptions{}, ExpertShape{3, 8, 0, 8});
            }).find("but 3 does not divide"),
            std::string::npos);
  EXPECT_NE(testing::error_text<UsageError>([] {
              make({{"kernel", 2}});
            }).find("kernel must be odd"),
            std::string::npos);
  EXPECT_NE(testing::error_text<UsageError>([] {
              make({{"path", "dense"}, {"gate", "output"}});
            }).find("gate = \"output\" needs path = \"gathered\""),
            std::string::npos);
  Routing routing = route(logits());
  routing.layout.grid_height = routing.layout.grid_width = 0;
  EXPECT_NE(testing::error_text([&] {
              make({{"path", "dense"}})->apply_routing(tokens(), routing);
            }).find("all patches of a feature map"),
            std::string::npos);
}

}  // namespace sparsight::norm_conv_test
