// The model under attack as reports see it.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/attacks/pgd.h"
#include "sparsight/attacks/routed/objective.h"
#include "sparsight/attacks/run/observed_model.h"
#include "sparsight/core/interrupt.h"
#include "tests/support/errors.h"
#include "tests/support/random_tensor.h"

namespace sparsight::observed_model_test {
namespace {

AttackBatch numbered_images(int64_t count) {
  return {(0.5 + 0.2 * test::random_tensor({count, 1, 4, 4}, 8)).clamp(0, 1).to(torch::kFloat),
          {torch::arange(count, torch::kLong) % 3},
          10 + torch::arange(count, torch::kLong)};
}

at::Tensor logits_by_sine(const at::Tensor& x) {
  static const at::Tensor weight = test::random_tensor({16, 3}, 3).to(torch::kFloat);
  return (x.flatten(1).matmul(weight) * 3).sin();
}

}  // namespace

TEST(ObservedModel, CountsTheQueriesOfEachImage) {
  AttackedFunction inner(logits_by_sine);
  ObservedModel model(inner, false);
  const AttackBatch batch = numbered_images(5);
  PgdOptions options;
  options.steps = 3;
  const AttackResult result = Pgd(options, {{Norm::linf, .1, {}}}).run(model, batch);
  EXPECT_EQ(model.image_queries(12), 5);  // 3 steps, the last point and the final check
  EXPECT_EQ(model.image_queries(12) * 5, result.cost.queries);
  EXPECT_EQ(model.image_queries(0), 0);
  EXPECT_EQ(model.gradients().images, 15);
  EXPECT_EQ(model.gradients().zero, 0);
  model.set_counts({});
  EXPECT_EQ(model.image_queries(12), 0);
}

TEST(ObservedModel, ExactPassesAreOfSingleImages) {
  std::vector<int64_t> sizes;
  AttackedFunction inner([&](const at::Tensor& x) {
    sizes.push_back(x.size(0));
    return logits_by_sine(x);
  });
  ObservedModel exact(inner, true);
  const AttackBatch batch = numbered_images(6);
  const AttackEvaluation together = evaluate_objective(exact, {}, batch, batch.pixels, 1);
  EXPECT_EQ(sizes, std::vector<int64_t>(6, 1));
  for (int64_t i = 0; i < 6; ++i) {
    const AttackBatch one = batch.select(torch::tensor({i}, torch::kLong));
    const AttackEvaluation alone = evaluate_objective(exact, {}, one, one.pixels, 1);
    EXPECT_TRUE(torch::equal(alone.gradient[0], together.gradient[i]));
    EXPECT_TRUE(torch::equal(alone.logits[0], together.logits[i]));
  }
}

TEST(ObservedModel, CountsGradientsThatSayNothing) {
  AttackedFunction rounded([](const at::Tensor& x) { return logits_by_sine(x) * 0 + logits_by_sine(x).round(); });
  ObservedModel zero(rounded, false);
  const AttackBatch batch = numbered_images(4);
  evaluate_objective(zero, {}, batch, batch.pixels, 1);
  EXPECT_EQ(zero.gradients().zero, 4);
  // sqrt at 0 has an infinite slope, which times 0 is not a number: for the second image.
  AttackedFunction root([](const at::Tensor& x) {
    const at::Tensor zeros = (x * 0).flatten(1).sum(1, true);
    const at::Tensor second = torch::zeros_like(zeros);
    second[1] = 1;
    return logits_by_sine(x) + (second * zeros + (1 - second)).sqrt();
  });
  ObservedModel broken(root, false);
  const AttackEvaluation at_x = evaluate_objective(broken, {.loss = attack_loss::sigmoid_cross_entropy},
                                                   {batch.pixels, {torch::eye(4, 3)}, batch.image}, batch.pixels, 1);
  EXPECT_EQ(broken.gradients().not_finite, 1);
  EXPECT_EQ(broken.gradients().images, 4);
  EXPECT_TRUE(torch::isfinite(at_x.gradient).all().item<bool>());
  EXPECT_GT(at_x.gradient[0].abs().max().item<double>(), 0);
}

TEST(ObservedModel, RefusesOutputsThatAreNotFiniteAndStopsOnInterrupts) {
  AttackedFunction broken([](const at::Tensor& x) { return logits_by_sine(x) / 0; });
  ObservedModel model(broken, false);
  const AttackBatch batch = numbered_images(2);
  const auto run = [&] { evaluate_loss(model, {}, batch, batch.pixels, 1); };
  EXPECT_NE(testing::error_text(run).find("not finite"), std::string::npos);
  set_interrupted(true);
  const std::string message = testing::error_text(run);
  set_interrupted(false);
  EXPECT_NE(message.find("run the same command again"), std::string::npos) << message;
}

}  // namespace sparsight::observed_model_test
