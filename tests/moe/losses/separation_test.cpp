// The loss of separately trained routers, against the paper's closed forms.
#include "sparsight/moe/losses/targets.h"

#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include "sparsight/moe/routers/patch_choice.h"
#include "tests/moe/shazeer_example.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::separation_test {
namespace {

using test::near;
using test::table;

// The routing of whole images whose classes are `labels`, for logits [B S,E].
Routing make_routing(const at::Tensor& logits, const std::vector<int64_t>& labels) {
  PatchChoiceOptions options;
  options.patches = 1;
  options.gate = "ones";
  Routing routing = route_patch_choice(logits, {}, std::ssize(labels), options);
  routing.target = torch::one_hot(torch::tensor(labels, torch::kLong), logits.size(1)).to(logits.scalar_type());
  return routing;
}

// x: [B,S,D], w: [E,D].
at::Tensor compute_loss(const at::Tensor& x, const at::Tensor& w, const std::vector<int64_t>& labels) {
  return separation_loss(make_routing(x.flatten(0, 1).matmul(w.t()), labels));
}

at::Tensor input_gradient(const at::Tensor& x, const at::Tensor& w, const std::vector<int64_t>& labels) {
  const at::Tensor leaf = w.detach().clone().requires_grad_(true);
  compute_loss(x, leaf, labels).backward();
  return leaf.grad();
}

}  // namespace

class SeparationIn : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  // The tolerance of sums of some numbers near 1.
  double tol() const { return GetParam() == torch::kDouble ? 1e-14 : 1e-5; }
  at::Tensor random(at::IntArrayRef sizes, uint64_t seed) const { return test::random_tensor(sizes, seed, GetParam()); }
};

// Exact in both types. Two images of two patches. Class 0: (1 - 2) + (3 - 0) = 2; class 1: (1 - 0) + (0 - 4) = -3.
// -(2 - 3) / 2.
TEST_P(SeparationIn, ByHand) {
  const at::Tensor logits = table({{1, 2}, {3, 0}, {0, 1}, {4, 0}}).to(GetParam()).requires_grad_(true);
  Routing routing = make_routing(logits, {0, 1});
  const at::Tensor loss = separation_loss(routing);
  EXPECT_TRUE(near(loss, 0.5, 1e-15));
  loss.backward();  // own class -1/2, the other's 1/2
  EXPECT_TRUE(near(logits.grad(), table({{-.5, .5}, {-.5, .5}, {.5, -.5}, {.5, -.5}}), 1e-15));
  routing.target = table({{.5, .5}, {.5, .5}}).to(GetParam());
  EXPECT_TRUE(near(separation_loss(routing), 0., 1e-15));
  routing.target = at::Tensor();
  EXPECT_FALSE(separation_loss(routing).defined());
}

// The same with a patch of padding and an image of nothing else.
TEST_P(SeparationIn, PaddingCountsInNothing) {
  const at::Tensor logits = table({{1, 2}, {3, 0}, {0, 1}, {9, 7}, {8, 6}, {5, 5}}).to(GetParam());
  Routing routing = make_routing(logits, {0, 1, 0});
  routing.valid = torch::tensor({1, 1, 1, 0, 0, 0}, torch::kLong).to(torch::kBool);
  EXPECT_TRUE(near(separation_loss(routing), -(2. + 1) / 2, 1e-15));
}

// Section 4.2 of the specification of the paper: dl/dw_1 = -(1/B) sum of y sum of x = -dl/dw_2, whatever w is; y = +1
// for class 0.
TEST_P(SeparationIn, P16_GradientIsTheClosedFormAndConstant) {
  const std::vector<int64_t> labels = {0, 1, 1, 0, 1};
  const at::Tensor x = random({5, 4, 3}, 1), y = torch::tensor({1., -1., -1., 1., -1.}, GetParam());
  const at::Tensor first = -(y.view({5, 1}) * x.sum(1)).mean(0), closed = torch::stack({first, -first});
  EXPECT_TRUE(near(input_gradient(x, torch::zeros({2, 3}, GetParam()), labels), closed, tol()));
  EXPECT_TRUE(near(input_gradient(x, random({2, 3}, 2) * 10, labels), closed, tol()));
}

// SGD over whole epochs, whatever the batches: w + eta E (N/B) mean of y sum of x.
TEST(SeparationLoss, P16_SgdOverWholeEpochsIsTheClosedForm) {
  constexpr int64_t kImages = 12, kBatch = 3, kEpochs = 7;
  constexpr double kRate = 0.3;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < kImages; ++i) labels.push_back(i % 2);
  const at::Tensor x = test::random_tensor({kImages, 5, 4}, 3), start = test::random_tensor({2, 4}, 4);
  const at::Tensor w = start.clone().requires_grad_(true);
  torch::optim::SGD sgd({w}, torch::optim::SGDOptions(kRate));
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch)
    for (int64_t first = 0; first < kImages; first += kBatch) {
      // Another order each epoch: image (5 i + epoch) mod 12.
      std::vector<int64_t> which, of;
      for (int64_t i = first; i < first + kBatch; ++i) {
        which.push_back((5 * i + epoch) % kImages);
        of.push_back(labels[static_cast<size_t>(which.back())]);
      }
      sgd.zero_grad();
      compute_loss(x.index_select(0, torch::tensor(which, torch::kLong)), w, of).backward();
      sgd.step();
    }
  const at::Tensor y = 1 - 2 * torch::tensor(labels, torch::kLong).to(torch::kDouble);
  const at::Tensor step = kRate * kEpochs * (kImages / kBatch) * (y.view({-1, 1}) * x.sum(1)).mean(0);
  EXPECT_TRUE(near(w, start + torch::stack({step, -step}), 1e-12));
}

// Classes (0,1) and (2,3), two images and three: the means are over the images of each pair.
TEST_P(SeparationIn, P24_PairsOfClassesAreTrainedByThemselves) {
  const std::vector<int64_t> labels = {0, 1, 2, 3, 2};
  const at::Tensor x = random({5, 4, 3}, 5), sum = x.sum(1);
  const at::Tensor third = sum[2] + sum[4];
  const at::Tensor closed =
      -torch::stack({(sum[0] - sum[1]) / 2, (sum[1] - sum[0]) / 2, (third - sum[3]) / 3, (sum[3] - third) / 3});
  EXPECT_TRUE(near(input_gradient(x, random({4, 3}, 6), labels), closed, tol()));
}

// Three classes: the last one against class 0, whose own expert learns from class 1 alone.
TEST_P(SeparationIn, P24_TheLastOfAnOddNumberIsPairedWithTheFirst) {
  const std::vector<int64_t> labels = {0, 1, 2, 2};
  const at::Tensor x = random({4, 4, 3}, 7), sum = x.sum(1);
  const at::Tensor closed =
      -torch::stack({(sum[0] - sum[1]) / 2, (sum[1] - sum[0]) / 2, (sum[2] + sum[3] - sum[0]) / 3});
  EXPECT_TRUE(near(input_gradient(x, random({3, 3}, 8), labels), closed, tol()));
  EXPECT_TRUE(near(compute_loss(x, torch::ones({1, 3}, GetParam()), {0, 0, 0, 0}), 0., 0));  // alone, against itself
}

INSTANTIATE_TEST_SUITE_P(Types, SeparationIn, ::testing::Values(torch::kFloat, torch::kDouble));

TEST(SeparationLoss, GradientsFollowDifferences) {
  const at::Tensor logits = test::random_tensor({12, 5}, 9), target = at::softmax(test::random_tensor({3, 5}, 10), 1);
  const auto loss = [&] {
    Routing routing = make_routing(logits, {0, 1, 2});
    routing.target = target;
    return separation_loss(routing);
  };
  EXPECT_LT(test::gradient_error(loss, {logits}), 1e-8);
}

}  // namespace sparsight::separation_test
