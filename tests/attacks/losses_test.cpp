// The losses that attacks maximise: the worked example, gradients, invariances, large logits.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/attacks/losses.h"
#include "tests/attacks/toy_classifier.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::attack_losses_test {
namespace {

// The loss at the worked example's image and its gradient there.
std::pair<at::Tensor, at::Tensor> value_and_gradient(AttackLoss loss, int64_t target = 0) {
  const at::Tensor x = test::toy_batch().pixels.clone().requires_grad_(true);
  const at::Tensor value =
      loss(test::toy_logits(x), {torch::tensor({1}, torch::kLong), torch::tensor({target}, torch::kLong)});
  value.sum().backward();
  return {value.detach(), x.grad()};
}

struct NamedCase {
  const char* name;
  AttackLoss loss;
};
const NamedCase kLosses[] = {{"cross_entropy", attack_loss::cross_entropy},
                             {"sigmoid_cross_entropy", attack_loss::sigmoid_cross_entropy},
                             {"dlr", attack_loss::dlr},
                             {"targeted_dlr", attack_loss::targeted_dlr},
                             {"margin", attack_loss::margin},
                             {"targeted_margin", attack_loss::targeted_margin}};

}  // namespace

TEST(AttackLosses, A12_ReproduceTheWorkedExample) {
  EXPECT_TRUE(test::near(test::toy_logits(test::toy_batch().pixels),
                         test::row({0.623175, 1.112664, 0.784485, 0.091677}), 1e-6));
  const auto [ce, ce_gradient] = value_and_gradient(attack_loss::cross_entropy);
  EXPECT_NEAR(ce.item<double>(), 0.990809, 1e-6);
  EXPECT_TRUE(test::near(ce_gradient, test::row({-6.094533, 6.231223, -6.971169, 6.649190}), 1e-6));
  const auto [dlr, dlr_gradient] = value_and_gradient(attack_loss::dlr);
  EXPECT_NEAR(dlr.item<double>(), -0.670452, 1e-6);
  EXPECT_TRUE(test::near(dlr_gradient, test::row({-14.639837, 10.900622, -6.722357, 2.689408}), 1e-6));
  EXPECT_NEAR(value_and_gradient(attack_loss::targeted_dlr, 0).first.item<double>(), -0.648125, 1e-6);
  EXPECT_NEAR(value_and_gradient(attack_loss::targeted_dlr, 2).first.item<double>(), -0.434537, 1e-6);
  EXPECT_NEAR(value_and_gradient(attack_loss::targeted_dlr, 3).first.item<double>(), -1.351875, 1e-6);
  // 0.784485 - 1.112664
  EXPECT_NEAR(value_and_gradient(attack_loss::margin).first.item<double>(), -0.328179, 1e-6);
}

// Logits 2 and -1 with labels 1 and 0: softplus(2) - 2 + softplus(-1) = 2.126928 - 2 + 0.313262.
TEST(AttackLosses, A12_SigmoidCrossEntropyIsSummedOverClasses) {
  const at::Tensor z = test::row({2, -1});
  EXPECT_NEAR(attack_loss::sigmoid_cross_entropy(z, {torch::tensor({0}, torch::kLong)}).item<double>(), 0.440190, 1e-6);
  // Both labels: softplus(2) - 2 + softplus(-1) + 1.
  EXPECT_NEAR(attack_loss::sigmoid_cross_entropy(z, {test::row({1, 1})}).item<double>(), 1.440190, 1e-6);
}

// Logits 3, 1, 2 and 0. Labels {0, 1}: 2 - 3; {1, 3}: 3 - 1; {1}: as with one label, 3 - 1.
TEST(AttackLosses, A34_MarginOfSeveralLabelsIsBetweenTheLargestOfBothKinds) {
  const at::Tensor z = test::row({3, 1, 2, 0}).repeat({3, 1}),
                   sets = torch::tensor({{1, 1, 0, 0}, {0, 1, 0, 1}, {0, 1, 0, 0}}).to(torch::kBool);
  const at::Tensor margin = attack_loss::margin(z, {sets});
  EXPECT_TRUE(margin.equal(torch::tensor({-1.0, 2.0, 2.0}, torch::kDouble)));
  EXPECT_TRUE(torch::equal(margin > 0, ~classified_correctly(z, sets)));
  EXPECT_EQ(attack_loss::margin(z.narrow(0, 0, 1), {torch::tensor({1}, torch::kLong)}).item<double>(), 2);
  EXPECT_LT(attack_loss::margin(z.narrow(0, 0, 1), {torch::ones({1, 4}, torch::kBool)}).item<double>(), -1e300);
  const at::Tensor logits = test::random_tensor({3, 4}, 6);
  EXPECT_LT(test::gradient_error([&] { return attack_loss::margin(logits, {sets}).sum(); }, {logits}), 1e-8);
}

TEST(AttackLosses, A34_AutoFollowsTheLabels) {
  const at::Tensor z = test::random_tensor({2, 3}, 7);
  const AttackLabels one{torch::tensor({0, 2}, torch::kLong)}, several{torch::ones({2, 3}, torch::kBool)};
  EXPECT_TRUE(torch::equal(attack_loss::automatic(z, one), attack_loss::cross_entropy(z, one)));
  EXPECT_TRUE(torch::equal(attack_loss::automatic(z, several), attack_loss::sigmoid_cross_entropy(z, several)));
  EXPECT_EQ(chosen_attack_loss("auto", false), "cross_entropy");
  EXPECT_EQ(chosen_attack_loss("auto", true), "sigmoid_cross_entropy");
  EXPECT_EQ(chosen_attack_loss("dlr", true), "dlr");
}

// What is declared: a loss that does not take several labels says so.
TEST(AttackLosses, A34_DeclareWhetherTheyTakeSeveralLabels) {
  const AttackLabels several{torch::ones({1, 3}, torch::kBool)};
  for (const std::string& name : attack_loss_names()) {
    const std::string message = testing::error_text([&] { attack_loss_named(name)(test::row({1, 2, 3}), several); });
    EXPECT_EQ(message.empty(), attack_loss_takes_several(name)) << name << ": " << message;
  }
}

TEST(AttackLosses, A12_GradientsAgreeWithFiniteDifferences) {
  const at::Tensor logits = test::random_tensor({7, 5}, 4);
  const AttackLabels labels{torch::arange(7, torch::kLong) % 5, (torch::arange(7, torch::kLong) + 2) % 5};
  for (const NamedCase& c : kLosses)
    EXPECT_LT(test::gradient_error([&] { return (c.loss(logits, labels) * torch::arange(1, 8)).sum(); }, {logits}),
              1e-8)
        << c.name;
}

TEST(AttackLosses, A12_StayFiniteForLargeLogits) {
  for (const auto type : {torch::kFloat, torch::kDouble})
    for (const NamedCase& c : kLosses) {
      const at::Tensor z = torch::tensor({{1e4, -1e4, 0., 10.}, {-1e4, -1e4, 1e4, 1e4}, {1e4, 1e4, 1e4, 1e4}}, type)
                               .requires_grad_(true);
      const at::Tensor loss =
          c.loss(z, {torch::tensor({0, 0, 2}, torch::kLong), torch::tensor({1, 3, 3}, torch::kLong)});
      loss.sum().backward();
      EXPECT_TRUE(torch::isfinite(loss).all().item<bool>()) << c.name;
      EXPECT_TRUE(torch::isfinite(z.grad()).all().item<bool>()) << c.name;
    }
}

TEST(AttackLosses, A13_DlrIsInvariantAndPositiveExactlyWhereMisclassified) {
  const at::Tensor logits = test::random_tensor({200, 6}, 5);
  const AttackLabels labels{torch::arange(200, torch::kLong) % 6};
  const at::Tensor dlr = attack_loss::dlr(logits, labels);
  EXPECT_TRUE(test::near(attack_loss::dlr(3 * logits + 5, labels), dlr, 1e-9));
  const at::Tensor correct = classified_correctly(logits, labels.label);
  EXPECT_GT(correct.sum().item<int64_t>(), 10);
  EXPECT_TRUE(torch::equal(dlr > 0, ~correct));
}

TEST(AttackLosses, RefuseTooFewClassesAndSeveralLabels) {
  const AttackLabels label{torch::tensor({0}, torch::kLong), torch::tensor({1}, torch::kLong)};
  EXPECT_NE(testing::error_text<UsageError>([&] {
              attack_loss::dlr(test::row({1, 2}), label);
            }).find("at least 3 classes"),
            std::string::npos);
  EXPECT_NE(testing::error_text<UsageError>([&] {
              attack_loss::targeted_dlr(test::row({1, 2, 3}), label);
            }).find("at least 4 classes"),
            std::string::npos);
  EXPECT_NE(testing::error_text([&] {
              attack_loss::dlr(test::row({1, 2, 3}), {test::row({1, 0, 1})});
            }).find("sigmoid_cross_entropy"),
            std::string::npos);
  EXPECT_NE(testing::error_text<UsageError>([] { attack_loss_named("cross_entropi"); }).find("cross_entropy"),
            std::string::npos);
}

TEST(AttackLosses, AnyOfSeveralLabelsIsCorrect) {
  const at::Tensor z = torch::tensor({{3., 1., 2.}, {1., 3., 2.}, {1., 2., 3.}});
  const at::Tensor labels = torch::tensor({{1., 1., 0.}, {1., 0., 1.}, {0., 0., 1.}});
  EXPECT_TRUE(torch::equal(classified_correctly(z, labels), torch::tensor({true, false, true})));
}

}  // namespace sparsight::attack_losses_test
