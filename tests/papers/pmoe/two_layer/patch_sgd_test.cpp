// The hand-written steps against autograd through the whole model; separately trained routers against their closed
// form.
#include "sparsight/papers/pmoe/two_layer/patch_sgd.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sparsight/data/sets/composite.h"
#include "sparsight/nn/patches.h"
#include "tests/support/errors.h"
#include "tests/support/random_tensor.h"

namespace sparsight::pmoe::patch_sgd_test {

constexpr int64_t kPatches = 6, kWidth = 4;

struct Shape {
  std::string gate = "topl_softmax", average = "taken";
  int64_t classes = 2, experts = 3, taken = 2;
  std::vector<int64_t> blocks = {0};
};

std::shared_ptr<PatchCnn> build_model(const Shape& s) {
  const MoeSpec spec = read_moe_spec(
      {{"moe", {{"blocks", s.blocks}, {"experts", s.experts}, {"hidden", 5}}},
       {"experts", {{"name", "conv"}, {"channels", 0}, {"output", "normal"}, {"init_std", 0.5}}},
       {"capacity", Json::object()},
       {"losses", Json::object()},
       {"router", {{"name", "patch_choice"}, {"patches", s.taken}, {"gate", s.gate}, {"init_std", 0.5}}}});
  PatchCnnOptions options;
  options.patch = 1;
  options.average = s.average;
  auto model = std::make_shared<PatchCnn>(options, ModelContext{{kWidth, 1, kPatches, s.classes}, spec});
  initialize(*model, 1);
  model->to(torch::kDouble);
  return model;
}

PatchSet samples(int64_t count, int64_t classes) {
  PatchSet set;
  set.table = test::random_tensor({count * kPatches, kWidth}, 3, torch::kDouble);
  set.labels = torch::arange(count, torch::kLong) % classes;
  set.position = torch::full({count}, -1, torch::kLong);
  set.patches = kPatches;
  set.classes = classes;
  return set;
}

// [N,d,1,n]: the same samples as images of one row.
at::Tensor as_images(const PatchSet& set) {
  return set.table.view({set.size(), set.patches, set.width()}).transpose(1, 2).unsqueeze(2).contiguous();
}

at::Tensor flat(PatchCnn& model) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& p : model.parameters()) all.push_back(p.detach().reshape({-1}).clone());
  return torch::cat(all);
}

void expect_same_step(const Shape& s) {
  const PatchSet set = samples(5, s.classes);
  const auto by_hand = build_model(s), by_autograd = build_model(s);
  PatchSgdOptions options;
  options.lr = 0.3;
  options.batch = 5;
  const PatchEpoch epoch = PatchSgd(by_hand, set, options, 0).train_epoch();
  const at::Tensor logits = by_autograd->forward({as_images(set), ForwardMode::training(), {1, 0}}).logits;
  const at::Tensor loss = torch::cross_entropy_loss(logits, set.labels);
  loss.backward();
  {
    const torch::NoGradGuard no_grad;
    for (const auto& p : by_autograd->named_parameters())
      if (p.value().grad().defined()) p.value().sub_(p.value().grad() * 0.3);
  }
  EXPECT_NEAR(epoch.loss, loss.item<double>(), 1e-12);
  EXPECT_EQ(epoch.wrong, (logits.argmax(1) != set.labels).sum().item<int64_t>());
  EXPECT_LT((flat(*by_hand) - flat(*by_autograd)).abs().max().item<double>(), 1e-12)
      << s.gate << " " << s.average << " " << s.classes;
  EXPECT_GT((flat(*by_hand) - flat(*build_model(s))).abs().max().item<double>(), 1e-3);
}

TEST(PatchSgd, P11_P12_P13_P18_AStepIsThatOfAutograd) {
  for (const char* gate : {"topl_softmax", "ones"})
    for (const char* average : {"taken", "all"})
      for (const int64_t classes : {2, 3}) expect_same_step({gate, average, classes});
  for (const int64_t classes : {2, 3}) expect_same_step({"ones", "taken", classes, 1, 2, {}});
}

TEST(PatchSgd, P10_FrozenRoutersAndOutputWeightsStay) {
  const auto model = build_model({"ones"});
  const at::Tensor router = model->parts().router->weight.clone(), w2 = model->parts().experts->w2.clone();
  PatchSgdOptions options;
  options.epochs = 3;
  options.stop = "epochs";
  const PatchSet set = samples(8, 2);
  EXPECT_EQ(PatchSgd(model, set, options, 0).train().size(), 3U);
  EXPECT_TRUE(model->parts().router->weight.equal(router));
  EXPECT_TRUE(model->parts().experts->w2.equal(w2));
}

// w_e = w_e(0) + lr * epochs * (N/B) * mean of t sum_j x_j, with t = +1 for the class of expert e (section 4.2).
TEST(PatchSgd, P16_RoutersOfTwoClassesReachTheirClosedForm) {
  const auto model = build_model({"ones", "taken", 2, 2});
  const at::Tensor before = model->parts().router->weight.detach().clone();
  const PatchSet set = samples(8, 2);
  PatchSgdOptions options;
  options.router_batch = 4;
  options.router_epochs = 3;
  options.router_lr = 0.1;
  PatchSgd(model, set, options, 0).train_routers();
  const at::Tensor sums = set.table.view({8, kPatches, kWidth}).sum(1);
  const at::Tensor y = ((set.labels == 1).to(torch::kDouble) * 2 - 1).unsqueeze(1);
  const at::Tensor increment = 0.1 * 3 * 2 * (y * sums).mean(0);
  const at::Tensor after = model->parts().router->weight.detach();
  EXPECT_LT((after[1] - before[1] - increment).abs().max().item<double>(), 1e-12);
  EXPECT_LT((after[0] - before[0] + increment).abs().max().item<double>(), 1e-12);
}

// N_r = 4 of N = 8 samples: the closed form above over the first four alone, with N_r / B = 2 steps an epoch. More than
// there are is all.
TEST(PatchSgd, P16_RoutersOfFewerSamplesReachTheClosedFormOfThose) {
  const PatchSet set = samples(8, 2);
  const auto change = [&](int64_t router_samples) {
    const auto model = build_model({"ones", "taken", 2, 2});
    const at::Tensor before = model->parts().router->weight.detach().clone();
    PatchSgdOptions options;
    options.router_batch = 2;
    options.router_epochs = 3;
    options.router_lr = 0.1;
    options.router_samples = router_samples;
    PatchSgd(model, set, options, 0).train_routers();
    return model->parts().router->weight.detach() - before;
  };
  const at::Tensor sums = set.table.view({8, kPatches, kWidth}).sum(1).narrow(0, 0, 4);
  const at::Tensor y = ((set.labels.narrow(0, 0, 4) == 1).to(torch::kDouble) * 2 - 1).unsqueeze(1);
  const at::Tensor few = change(4), increment = 0.1 * 3 * 2 * (y * sums).mean(0);
  EXPECT_LT((few[1] - increment).abs().max().item<double>(), 1e-12);
  EXPECT_LT((few[0] + increment).abs().max().item<double>(), 1e-12);
  EXPECT_TRUE(change(9).equal(change(0)));
  EXPECT_FALSE(change(4).equal(change(0)));
}

// With three classes in turn, the first two samples have classes 0 and 1 alone: the third kernel's pair, 2 against 0,
// has the sample of class 0, whose patches it is moved away from: -lr * epochs * sum of its patches.
TEST(PatchSgd, P24_FewerSamplesThanClassesTrainTheirPairs) {
  const auto model = build_model({"ones", "taken", 3, 3});
  const at::Tensor before = model->parts().router->weight.detach().clone();
  const PatchSet set = samples(6, 3);
  PatchSgdOptions options;
  options.router_batch = 4;
  options.router_epochs = 2;
  options.router_lr = 0.1;
  options.router_samples = 2;
  PatchSgd(model, set, options, 0).train_routers();
  const at::Tensor sums = set.table.view({6, kPatches, kWidth}).sum(1);
  const at::Tensor change = model->parts().router->weight.detach() - before;
  EXPECT_LT((change[0] - 0.1 * 2 * (sums[0] - sums[1]) / 2).abs().max().item<double>(), 1e-12);
  EXPECT_LT((change[2] + 0.1 * 2 * sums[0]).abs().max().item<double>(), 1e-12);
}

// Three classes: 0 against 1 as above, and 2 against 0, which leaves kernel 0 alone.
TEST(PatchSgd, P24_TheLastOfAnOddNumberOfClassesIsPairedWithTheFirst) {
  const auto model = build_model({"ones", "taken", 3, 3});
  const at::Tensor before = model->parts().router->weight.detach().clone();
  const PatchSet set = samples(6, 3);
  PatchSgdOptions options;
  options.router_batch = 4;
  options.router_epochs = 2;
  options.router_lr = 0.1;
  PatchSgd(model, set, options, 0).train_routers();
  const at::Tensor sums = set.table.view({6, kPatches, kWidth}).sum(1);
  const auto of = [&](int64_t label) {
    return sums.index_select(0, (set.labels == label).nonzero().squeeze(1)).sum(0);
  };
  const at::Tensor change = model->parts().router->weight.detach() - before;
  const auto expect = [](const at::Tensor& a, const at::Tensor& b) {
    EXPECT_LT((a - b).abs().max().item<double>(), 1e-12);
  };
  expect(change[0], 0.1 * 2 * (of(0) - of(1)) / 4);
  expect(change[1], -change[0]);
  expect(change[2], 0.1 * 2 * (of(2) - of(0)) / 4);
}

// Outputs of +-1e4 and beyond: the loss of a wrong sample is its output's size, that of a right one 0.
TEST(PatchSgd, P15_LossesOfHugeOutputsAreFinite) {
  for (const int64_t classes : {2, 3}) {
    const auto model = build_model({"ones", "taken", classes});
    {
      const torch::NoGradGuard no_grad;
      model->parts().experts->w1.mul_(1e5);
    }
    const PatchSet set = samples(6, classes);
    const at::Tensor f = patch_outputs(*model, set);
    EXPECT_GT(f.abs().max().item<double>(), 1e4);
    PatchSgdOptions options;
    options.lr = 1e-9;
    const PatchEpoch epoch = PatchSgd(model, set, options, 0).train_epoch();
    EXPECT_TRUE(std::isfinite(epoch.loss));
    EXPECT_TRUE(flat(*model).isfinite().all().item<bool>());
  }
}

// The router's scores are those of a convolution whose kernel and stride are the patch.
TEST(PatchSgd, P2_RouterScoresAreAConvolution) {
  const at::Tensor images = test::random_tensor({2, 3, 8, 12}, 5, torch::kDouble);
  const at::Tensor kernel = test::random_tensor({2, 3, 4, 4}, 6, torch::kDouble);
  PatchSet set;
  set.table = image_patches(images, 4).flatten(0, 1);
  set.labels = torch::zeros({2}, torch::kLong);
  set.patches = 6;
  set.classes = 2;
  const MoeSpec spec = read_moe_spec({{"moe", {{"blocks", {0}}, {"experts", 2}, {"hidden", 1}}},
                                      {"experts", {{"name", "conv"}, {"channels", 3}, {"output", "normal"}}},
                                      {"capacity", Json::object()},
                                      {"losses", Json::object()},
                                      {"router", {{"name", "patch_choice"}, {"patches", 2}}}});
  PatchCnnOptions options;
  options.patch = 4;
  PatchCnn model(options, ModelContext{{3, 8, 12, 2}, spec});
  model.to(torch::kDouble);
  {
    const torch::NoGradGuard no_grad;
    model.parts().router->weight.copy_(kernel.flatten(1));
  }
  const Routing routing = route_patches(model, set, 0, 2);
  const at::Tensor scores = torch::conv2d(images, kernel, {}, 4).flatten(2).transpose(1, 2).reshape({12, 2});
  EXPECT_LT((routing.clean_logits - scores).abs().max().item<double>(), 1e-12);
}

TEST(PatchSgd, OutputsAreThoseOfTheModel) {
  for (const int64_t classes : {2, 3}) {
    const auto model = build_model({"topl_softmax", "taken", classes});
    const PatchSet set = samples(7, classes);
    const at::Tensor f = patch_outputs(*model, set),
                     logits = model->forward({as_images(set), ForwardMode::training()}).logits.detach();
    EXPECT_LT((f - (classes == 2 ? logits.narrow(1, 1, 1) : logits)).abs().max().item<double>(), 1e-12);
  }
}

TEST(PatchSgd, P22_AnOutputAtTheThresholdIsWrong) {
  const at::Tensor f = torch::tensor({0.0, 0.2, -0.1, 0.7}).unsqueeze(1), labels = torch::tensor({1, 1, 0, 0});
  EXPECT_DOUBLE_EQ(patch_accuracy(f, labels), 0.5);        // wrong, right, right, wrong
  EXPECT_DOUBLE_EQ(patch_accuracy(f, labels, 0.5), 0.25);  // wrong, wrong, right, wrong
}

TEST(PatchSgd, SettingsItCannotTrainAreErrors) {
  EXPECT_NE(testing::error_text([] {
              PatchSgd(build_model({"softmax_topl"}), samples(4, 2), {}, 0);
            }).find("got \"softmax_topl\"; use `train`"),
            std::string::npos);
  EXPECT_NE(testing::error_text([] {
              PatchSgd(build_model({"ones"}), samples(4, 2), {}, 0).train_routers();
            }).find("one expert for each of the 2 classes"),
            std::string::npos);
}

TEST(PatchSet, IsTheImagesCutUp) {
  CompositeOptions options;
  options.cells = "glyphs";
  options.train = 6;
  const DataSplits splits = make_composite(options, {});
  const PatchSet set = cut_into_patches(*splits.train, 28, 6);
  EXPECT_EQ(set.size(), 6);
  EXPECT_EQ(set.patches, 16);
  for (int64_t i = 0; i < 6; ++i) {
    const Sample sample = splits.train->get(i);
    const at::Tensor patches = image_patches(sample.image.unsqueeze(0).to(torch::kFloat) / 255, 28)[0];
    const at::Tensor rows = set.rows(torch::arange(16) + 16 * i, torch::kFloat);
    EXPECT_LT((rows - patches).abs().max().item<double>(), 1e-6);
    EXPECT_EQ(set.labels[i].item<int64_t>(), sample.label);
    EXPECT_EQ(set.position[i].item<int64_t>(), static_cast<int64_t>(sample.attributes[0]));
  }
  EXPECT_EQ(set.slice(0, 2).table.size(0), 32);
  EXPECT_NE(testing::error_text([&] { cut_into_patches(*splits.train, 27, 6); }).find("patches of 27x27"),
            std::string::npos);
  EXPECT_NE(testing::error_text([&] { cut_into_patches(*splits.train, 28, 7); }).find("has 6 images, 7 were requested"),
            std::string::npos);
}

}  // namespace sparsight::pmoe::patch_sgd_test
