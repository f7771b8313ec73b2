#include "sparsight/ops/adam_step.h"

#include <cmath>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/kernels/isa/isa.h"
#include "sparsight/ops/ref/adam_step.h"
#include "tests/support/random_tensor.h"

namespace sparsight::adam_step_test {
namespace {

AdamTensors random_tensors(at::IntArrayRef sizes, at::ScalarType type, double updates = 3) {
  return {.value = test::random_tensor(sizes, 1, type),
          .gradient = test::random_tensor(sizes, 2, type),
          .exp_avg = test::random_tensor(sizes, 3, type),
          .exp_avg_sq = test::random_tensor(sizes, 4, type).square(),
          .average = test::random_tensor(sizes, 5, type),
          .updates = updates};
}

std::vector<at::Tensor> written(const AdamTensors& p) { return {p.value, p.exp_avg, p.exp_avg_sq, p.average}; }

AdamTensors clone_tensors(const AdamTensors& p) {
  return {p.value.clone(), p.gradient, p.exp_avg.clone(), p.exp_avg_sq.clone(), p.average.clone(), p.updates};
}

const AdamStep kStep{.lr = 0.1,
                     .beta1 = 0.5,
                     .beta2 = 0.75,
                     .eps = 0.5,
                     .weight_decay = 0.5,
                     .gradient_factor = 0.25,
                     .average_share = 0.25};

void expect_reference(const AdamTensors& p, const AdamStep& step, const std::string& what) {
  const AdamTensors fused = clone_tensors(p), slow = clone_tensors(p);
  adam_step({fused}, step);
  ref::adam_step(slow, step);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(torch::allclose(written(fused)[i], written(slow)[i], 1e-5, 1e-6)) << what << " tensor " << i;
}

class AdamStepTest : public testing::TestWithParam<at::ScalarType> {};

// G = 0.25 8 = 2, W = 4 (1 - 0.05) = 3.8, M = 0.5 1 + 0.5 2 = 1.5, V = 0.75 4 + 0.25 4 = 4; the second update:
// M / (1 - 0.25) = 2, sqrt(V / (1 - 0.5625)) = 3.0237158, W = 3.8 - 0.1 2 / 3.5237158 = 3.7432417,
// average = 1 + 0.25 (3.7432417 - 1) = 1.6858104.
TEST_P(AdamStepTest, OneStepByHand) {
  const auto tensor = [](double x) { return torch::full({1}, x, GetParam()); };
  const AdamTensors p{tensor(4), tensor(8), tensor(1), tensor(4), tensor(1), /*updates=*/2};
  adam_step({p}, kStep);
  EXPECT_NEAR(p.exp_avg.item<double>(), 1.5, 1e-6);
  EXPECT_NEAR(p.exp_avg_sq.item<double>(), 4, 1e-6);
  EXPECT_NEAR(p.value.item<double>(), 3.7432417, 1e-6);
  EXPECT_NEAR(p.average.item<double>(), 1.6858104, 1e-6);
  EXPECT_EQ(p.gradient.item<double>(), 8);
}

// Coupled, G = 2 + 0.5 4 = 4: M = 2.5, V = 0.75 4 + 0.25 16 = 7; M / 0.75 = 3.3333333, sqrt(7 / 0.4375) = 4,
// W = 4 - 0.1 3.3333333 / 4.5 = 3.9259259.
TEST_P(AdamStepTest, CoupledDecayByHand) {
  const auto tensor = [](double x) { return torch::full({1}, x, GetParam()); };
  const AdamTensors p{tensor(4), tensor(8), tensor(1), tensor(4), {}, /*updates=*/2};
  AdamStep step = kStep;
  step.decoupled = false;
  adam_step({p}, step);
  EXPECT_NEAR(p.exp_avg.item<double>(), 2.5, 1e-6);
  EXPECT_NEAR(p.exp_avg_sq.item<double>(), 7, 1e-6);
  EXPECT_NEAR(p.value.item<double>(), 3.9259259, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Types, AdamStepTest, testing::Values(torch::kFloat, torch::kDouble));

}  // namespace

TEST(AdamStep, AgreesWithTheReferenceAtEveryLevelAndSize) {
  for (const std::string& name : isa_names()) {
    set_isa(name);
    for (const int64_t count : {0, 1, 3, 7, 8, 17, 31, 1000, 16384, 16385, 40001})
      for (const bool decoupled : {false, true})
        for (const double share : {0.0, 0.1, 0.9, 1.0}) {
          AdamStep step = kStep;
          step.decoupled = decoupled, step.average_share = share;
          expect_reference(random_tensors({count}, torch::kFloat), step, name + " " + std::to_string(count));
        }
  }
  set_isa("");
}

TEST(AdamStep, AShareOfOneCopiesTheValue) {
  const AdamTensors p = random_tensors({100}, torch::kFloat);
  AdamStep step = kStep;
  step.average_share = 1;
  adam_step({p}, step);
  EXPECT_TRUE(torch::equal(p.average, p.value));
}

TEST(AdamStep, TakesTensorsOfAnyStrides) {
  const auto channels_last = [](at::Tensor x) { return x.contiguous(at::MemoryFormat::ChannelsLast); };
  const AdamTensors p = random_tensors({3, 5, 7, 2}, torch::kFloat);
  const AdamTensors same{channels_last(p.value),      channels_last(p.gradient), channels_last(p.exp_avg),
                         channels_last(p.exp_avg_sq), channels_last(p.average),  p.updates};
  AdamTensors mixed = clone_tensors(p), gaps = clone_tensors(p);
  mixed.gradient = same.gradient;
  gaps.value = torch::zeros({3, 5, 7, 4}).slice(3, 0, 4, 2);
  gaps.value.copy_(p.value);
  adam_step({p, same, mixed, gaps}, kStep);
  for (const AdamTensors* other : std::initializer_list<const AdamTensors*>{&same, &mixed, &gaps})
    for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(torch::allclose(written(*other)[i], written(p)[i], 1e-5, 1e-6)) << i;
}

// The gradient of a 1 x 1 convolution may be channels last, which is the same order in memory.
TEST(AdamStep, DoesNotLookAtTheStridesOfAxesOfSizeOne) {
  const AdamTensors one = random_tensors({8, 3, 1, 1}, torch::kFloat), other = clone_tensors(one);
  adam_step({one}, kStep);
  AdamTensors last = other;
  last.gradient = other.gradient.as_strided({8, 3, 1, 1}, {3, 1, 3, 3});
  adam_step({last}, kStep);
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(torch::equal(written(one)[i], written(last)[i])) << i;
}

TEST(AdamStep, HasTheSameBitsForAnyNumberOfThreads) {
  const std::vector<AdamTensors> start{random_tensors({70001}, torch::kFloat), random_tensors({33, 5}, torch::kFloat)};
  const int threads = at::get_num_threads();
  std::vector<at::Tensor> expected;
  for (const int count : {1, 2, 4}) {
    at::set_num_threads(count);
    const std::vector<AdamTensors> p{clone_tensors(start[0]), clone_tensors(start[1])};
    adam_step(p, kStep);
    std::vector<at::Tensor> all = written(p[0]);
    for (const at::Tensor& x : written(p[1])) all.push_back(x);
    if (expected.empty()) expected = all;
    for (size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(torch::equal(all[i], expected[i])) << count << " " << i;
  }
  at::set_num_threads(threads);
}

}  // namespace sparsight::adam_step_test
