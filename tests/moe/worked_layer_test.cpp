// The worked example T4 of the layer: experts, gates and gradients by hand.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/moe/dispatch/rows.h"
#include "sparsight/moe/routers/softmax_topk.h"
#include "tests/moe/shazeer_example.h"
#include "tests/support/near.h"

namespace sparsight::worked_layer_test {
namespace {

constexpr at::ScalarType kTypes[] = {torch::kFloat, torch::kDouble};

// The loss of the worked example of the layer's forward and backward pass: toy experts E_i(x) = (i+1) x, and
// sum_j <y_j, (1,2,-1)>.
at::Tensor t4_loss(const at::Tensor& y) { return (y * torch::tensor({1., 2., -1.}, y.scalar_type())).sum(); }

// T4, by a routing of the example's leaves.
void expect_t4(const test::NoisyExample& e, const Routing& routing) {
  const double tol = test::example_tolerance(e.x.scalar_type());
  test::Scaling experts;
  routing.gate.retain_grad();
  const at::Tensor y = experts.apply_routing(e.x, routing), loss = t4_loss(y);
  loss.backward();
  EXPECT_NEAR(loss.item<double>(), 11.761506, tol);
  EXPECT_TRUE(test::near(
      y,
      test::table({{2.094169, -1.047084, 0.523542}, {1.407300, 4.221900, -2.814600}, {-1.903257, 1.141954, 0.761303}}),
      tol));
  EXPECT_TRUE(torch::equal(routing.expert, torch::tensor({0, 3, 2, 1, 1, 0}, torch::kLong)));
  EXPECT_TRUE(test::near(routing.gate.grad(), torch::tensor({-.25, -1., 13.5, 9., -.5, -.25}, torch::kDouble), tol));
  EXPECT_TRUE(test::near(
      e.clean.grad(),
      test::table({{0.173775, 0, 0, -0.173775}, {0, -0.679621, 0.679621, 0}, {0.062372, -0.062372, 0, 0}}), tol));
  EXPECT_TRUE(test::near(e.wg.grad(),
                         test::table({{0.095810, -0.261845, 0.339811, -0.173775},
                                      {-0.040108, -1.066211, 1.019432, 0.086888},
                                      {0.074630, 0.648435, -0.679621, -0.043444}}),
                         tol));
  EXPECT_TRUE(test::near(e.wn.grad(),
                         test::table({{-0.003983, -0.109128, 0.163655, -0.060866},
                                      {0.006897, -0.221571, 0.490964, 0.030433},
                                      {0.030890, 0.171228, -0.327310, -0.015217}}),
                         tol));
  EXPECT_TRUE(test::near(
      e.x.grad(),
      test::table({{2.190071, 4.157207, -2.013834}, {3.336513, 5.635874, -3.221536}, {1.590475, 3.008643, -1.486015}}),
      tol));
}

}  // namespace

TEST(WorkedLayer, S6_ReproducesT4) {
  for (const auto type : kTypes) {
    const test::NoisyExample e(type);
    expect_t4(e, e.route());
  }
}

// With every expert chosen the gradients of all gates show: <(1,2,-1), (i+1) x_j>, whatever the gates are.
TEST(WorkedLayer, S6_ReproducesTheDenseGateGradientsOfT4) {
  for (const auto type : kTypes) {
    const test::NoisyExample e(type);
    const Routing all = e.route(4);
    all.gate.retain_grad();
    test::Scaling experts;
    t4_loss(experts.apply_routing(e.x, all)).backward();
    const at::Tensor dense = torch::zeros({3, 4}, type).index_put({all.token, all.expert}, all.gate.grad());
    EXPECT_TRUE(
        test::near(dense, test::table({{-.25, -.5, -.75, -1}, {4.5, 9, 13.5, 18}, {-.25, -.5, -.75, -1}}), 1e-6));
  }
}

// So the layer's output and all gradients of T4 come out of the other order too.
TEST(WorkedLayer, S11_SoftmaxFirstAndRenormalizedEqualsTopKFirst) {
  for (const auto type : kTypes) {
    const test::NoisyExample e(type);
    const at::Tensor noisy = e.clean + e.epsilon * e.scale;
    const Routing plain = route_softmax_topk(noisy, {}, 0, 2, false),
                  divided = route_softmax_topk(noisy, {}, 0, 2, true);
    EXPECT_TRUE(test::near(plain.gate.view({3, 2}),
                           test::table({{0.522118, 0.299756}, {0.775854, 0.176582}, {0.324939, 0.296828}}),
                           test::example_tolerance(type)));
    EXPECT_TRUE(test::near(divided.gate, e.route().gate, type == torch::kDouble ? 1e-12 : 1e-6));
    expect_t4(e, divided);
  }
}

}  // namespace sparsight::worked_layer_test
