// Attacks on the routing: values and gradients of their losses, and what they do to the routing of a small model.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/analysis/routing_change.h"
#include "sparsight/attacks/apgd/apgd.h"
#include "sparsight/attacks/pgd.h"
#include "sparsight/attacks/routed/clean_pass.h"
#include "sparsight/attacks/routed/routing_losses.h"
#include "tests/attacks/routed_model.h"
#include "tests/support/errors.h"
#include "tests/support/near.h"

namespace sparsight::routing_losses_test {
namespace {

std::vector<Routing> routings_at(AttackedModel& model, const AttackBatch& batch, const at::Tensor& pixels) {
  const torch::NoGradGuard no_grad;
  return model.forward(pixels, {batch.image, 0}).routings;
}

// The mean change rate of the layers.
double change(AttackedModel& model, const AttackBatch& batch, const at::Tensor& pixels) {
  double sum = 0;
  const auto changes = routing_changes(routings_at(model, batch, batch.pixels), routings_at(model, batch, pixels));
  for (const LayerChange& layer : changes) sum += layer.kept.rate() / static_cast<double>(changes.size());
  return sum;
}

double dropped(AttackedModel& model, const AttackBatch& batch, const at::Tensor& pixels) {
  double share = 0;
  for (const Routing& r : routings_at(model, batch, pixels))
    share += 1 - r.kept.to(torch::kDouble).mean().item<double>();
  return share;
}

Objective only(const std::string& loss) {
  Objective objective;
  objective.router.task_weight = 0;
  objective.routing.loss = loss;
  return objective;
}

at::Tensor loss_at(AttackedModel& model, const AttackBatch& batch, const std::string& loss, const at::Tensor& pixels) {
  return evaluate_loss(model, only(loss), batch, pixels, 0).loss;
}

at::Tensor moved(const AttackBatch& batch, double size) {
  return (batch.pixels + size * test::random_tensor(batch.pixels.sizes(), 5).sign()).clamp(0, 1);
}

// PGD on the loss of the routing alone.
at::Tensor attacked(AttackedModel& model, const AttackBatch& batch, const std::string& loss, double epsilon) {
  PgdOptions options;
  options.steps = 15;
  options.start = "ball";
  options.keep = "loss";
  options.objective.router.task_weight = 0;
  options.objective.routing.loss = loss;
  return Pgd(options, {{Norm::linf, epsilon, {}}, 3}).run(model, batch).pixels;
}

}  // namespace

TEST(RoutingLosses, KlAndGateGapAreWhatTheySay) {
  AttackedImageModel model(test::routed_vit());
  const AttackBatch batch = test::routed_images(model, 4);
  const at::Tensor pixels = moved(batch, 0.05);
  const std::vector<Routing> clean = routings_at(model, batch, batch.pixels), other = routings_at(model, batch, pixels);
  at::Tensor kl = torch::zeros({4}, torch::kDouble), gap = torch::zeros({4}, torch::kDouble);
  for (size_t l = 0; l < clean.size(); ++l) {
    const at::Tensor p = clean[l].clean_logits.softmax(1), q = other[l].clean_logits.softmax(1);
    for (int64_t t = 0; t < clean[l].tokens; ++t) {
      const int64_t image = t / clean[l].layout.per_image, first = clean[l].expert[2 * t].item<int64_t>(),
                    second = clean[l].expert[2 * t + 1].item<int64_t>();
      double best = 0, chosen = std::min(q[t][first].item<double>(), q[t][second].item<double>());
      for (int64_t e = 0; e < 4; ++e) {
        kl[image] += p[t][e] * (p[t][e] / q[t][e]).log() / 5;
        if (e != first && e != second) best = std::max(best, q[t][e].item<double>());
      }
      gap[image] -= std::max(0.0, chosen - best) / 5;
    }
  }
  EXPECT_TRUE(test::near(loss_at(model, batch, "kl", pixels), kl, 1e-10));
  EXPECT_TRUE(test::near(loss_at(model, batch, "gate_gap", pixels), gap, 1e-10));
  EXPECT_TRUE(test::near(loss_at(model, batch, "kl", batch.pixels), torch::zeros({4}, torch::kDouble), 1e-12));
}

TEST(RoutingLosses, GradientsAgreeWithCentralDifferences) {
  AttackedImageModel model(test::routed_vit());
  const AttackBatch batch = test::routed_images(model, 3);
  const at::Tensor pixels = moved(batch, 0.02);
  for (const std::string loss : {"kl", "gate_gap"}) {
    const at::Tensor gradient = evaluate_objective(model, only(loss), batch, pixels, 0).gradient;
    const double scale = gradient.abs().max().item<double>();
    EXPECT_GT(scale, 0);
    int64_t compared = 0;
    for (int64_t i = 0; i < pixels.numel(); i += 41) {
      const double h = 1e-6;
      at::Tensor above = pixels.clone(), below = pixels.clone();
      above.view(-1)[i] += h;
      below.view(-1)[i] -= h;
      if (change(model, {above, batch.labels, batch.image}, below) > 0) continue;
      const auto total = [&](const at::Tensor& x) { return loss_at(model, batch, loss, x).sum().item<double>(); };
      EXPECT_NEAR(gradient.view(-1)[i].item<double>(), (total(above) - total(below)) / (2 * h), 1e-5 * scale) << loss;
      ++compared;
    }
    EXPECT_GT(compared, 8);
  }
}

TEST(RoutingLosses, DropsAreTheShareThatCapacityDrops) {
  AttackedImageModel tight(test::routed_vit({"capacity.eval_factor=0.5"})),
      roomy(test::routed_vit({"capacity.eval_factor=1.9"}));
  const AttackBatch batch = test::routed_images(tight, 6);
  const at::Tensor pixels = moved(batch, 0.1);
  const at::Tensor loss = loss_at(tight, batch, "drops", pixels);
  EXPECT_GT(dropped(tight, batch, pixels), 0.5);  // at least half of the assignments of one of two layers
  EXPECT_TRUE(test::near(loss, torch::full({6}, dropped(tight, batch, pixels), torch::kDouble), 1e-12));
  // Without drops: what the fullest expert of each layer lacks.
  double lacking = 0;
  bool drops = false;
  for (const Routing& r : routings_at(roomy, batch, pixels)) {
    const int64_t over = r.chosen_count.max().item<int64_t>() - r.capacity.item<int64_t>();
    drops = drops || over >= 0;
    lacking += static_cast<double>(over) / 60;
  }
  ASSERT_FALSE(drops);
  EXPECT_NEAR(loss_at(roomy, batch, "drops", pixels)[0].item<double>(), lacking, 1e-12);
  const at::Tensor gradient = evaluate_objective(tight, only("drops"), batch, pixels, 0).gradient;
  EXPECT_GT(gradient.abs().amax({1, 2, 3}).min().item<double>(), 0);
}

TEST(RoutingLosses, AttacksOnTheRoutingChangeItMoreThanNoise) {
  AttackedImageModel model(test::routed_vit());
  const AttackBatch batch = test::routed_images(model, 12);
  const double noise = change(model, batch, moved(batch, 0.03));
  for (const char* loss : {"kl", "gate_gap"}) {
    const at::Tensor found = attacked(model, batch, loss, 0.03);
    EXPECT_GT(change(model, batch, found), 2 * noise) << loss;
    EXPECT_GT(change(model, batch, found), 0.1) << loss;
  }
}

TEST(RoutingLosses, TheAttackOnCapacityDropsMoreThanNoise) {
  AttackedImageModel model(test::routed_vit({"capacity.eval_factor=1"}));
  const AttackBatch batch = test::routed_images(model, 8);
  const double clean = dropped(model, batch, batch.pixels), noise = dropped(model, batch, moved(batch, 0.1)),
               found = dropped(model, batch, attacked(model, batch, "drops", 0.1));
  EXPECT_GT(found, clean + 0.05);
  EXPECT_GT(found, noise + 0.05);
  EXPECT_TRUE(only("drops").coupled(model));
}

TEST(RoutingLosses, A26_EpsilonZeroChangesNoRouting) {
  AttackedImageModel model(test::routed_vit());
  const AttackBatch batch = test::routed_images(model, 5);
  const at::Tensor found = attacked(model, batch, "kl", 0);
  EXPECT_TRUE(torch::equal(found, batch.pixels));
  EXPECT_EQ(change(model, batch, found), 0);
}

TEST(RoutingLosses, A41_TwoExpertsOfTwoNeverChange) {
  AttackedImageModel model(test::routed_vit({"moe.experts=2"}));
  const AttackBatch batch = test::routed_images(model, 6);
  for (const double epsilon : {0.01, 0.1, 0.5}) {
    PgdOptions options;
    options.steps = 5;
    const at::Tensor found = Pgd(options, {{Norm::linf, epsilon, {}}, 3}).run(model, batch).pixels;
    EXPECT_FALSE(torch::equal(found, batch.pixels));
    EXPECT_EQ(change(model, batch, found), 0);
  }
  EXPECT_TRUE(test::near(loss_at(model, batch, "gate_gap", batch.pixels), torch::zeros({6}, torch::kDouble), 0));
}

// Attacks go on with some images of a batch; each is compared with its own clean pass.
TEST(RoutingLosses, SelectionsKeepTheirCleanImages) {
  AttackedImageModel model(test::routed_vit());
  AttackBatch batch = test::routed_images(model, 6);
  batch.clean = std::make_shared<CleanImages>(batch.pixels, batch.image);
  batch.row = torch::arange(6, torch::kLong);
  const at::Tensor pixels = moved(batch, 0.05), some = torch::tensor({4, 1}, torch::kLong);
  for (const std::string loss : {"kl", "gate_gap"})
    EXPECT_TRUE(test::near(loss_at(model, batch.select(some), loss, pixels.index_select(0, some)),
                           loss_at(model, batch, loss, pixels).index_select(0, some), 1e-10));
  const int64_t queries = model.cost().queries;
  loss_at(model, batch, "kl", pixels);
  EXPECT_EQ(model.cost().queries, queries + 6);  // the clean pass is not repeated
  ApgdOptions options;
  options.steps = 6;
  options.restarts = 2;
  options.objective.routing = {"kl", 0.5};
  const AttackResult whole = Apgd(options, {{Norm::linf, .05, {}}, 4}).run(model, batch);
  const AttackResult part = Apgd(options, {{Norm::linf, .05, {}}, 4}).run(model, batch.select(some));
  EXPECT_TRUE(test::near(part.pixels, whole.pixels.index_select(0, some), 1e-9));
}

TEST(RoutingLosses, RefuseModelsThatHaveNothingToAttack) {
  AttackedFunction function([](const at::Tensor& x) { return x.flatten(1); });
  const AttackBatch batch{torch::rand({2, 3}, torch::kDouble), {torch::zeros({2}, torch::kLong)}};
  EXPECT_NE(testing::error_text([&] { loss_at(function, batch, "kl", batch.pixels); }).find("this one has none"),
            std::string::npos);
  AttackedImageModel model(test::routed_vit());
  const AttackBatch images = test::routed_images(model, 2);
  EXPECT_NE(testing::error_text([&] { loss_at(model, images, "drops", images.pixels); }).find("eval_factor"),
            std::string::npos);
  EXPECT_NE(testing::error_text([&] { loss_at(model, images, "kll", images.pixels); }).find("did you mean \"kl\""),
            std::string::npos);
}

}  // namespace sparsight::routing_losses_test
