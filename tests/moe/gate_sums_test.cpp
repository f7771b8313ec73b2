#include "sparsight/moe/gate_sums.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/moe/finish_routing.h"

namespace sparsight::gate_sums_test {
namespace {

// Tokens that choose experts 0, 1, ... with these gates [N,K].
Routing routing_with(const at::Tensor& gate) {
  Routing routing;
  routing.tokens = gate.size(0);
  routing.experts = gate.size(1);
  choose_per_token(routing, at::arange(gate.size(1)).expand_as(gate), gate);
  finish_routing(routing);
  normalize_gate_sums(routing);
  return routing;
}

}  // namespace

TEST(GateSums, AreOneForEveryToken) {
  // 0.3 / 0.4, 0.1 / 0.4; 0.2 / 0.8, 0.6 / 0.8; no sum to divide by.
  const Routing routing = routing_with(torch::tensor({0.3, 0.1, 0.2, 0.6, 0.0, 0.0}).reshape({3, 2}));
  EXPECT_TRUE(at::allclose(routing.gate, torch::tensor({0.75, 0.25, 0.25, 0.75, 0.0, 0.0})));
}

// d/dp of p / constant p is 1 / p: 4 and 2.
TEST(GateSums, OfOneChoiceStillTeachTheRouter) {
  at::Tensor gate = torch::tensor({0.25, 0.5}).reshape({2, 1}).requires_grad_();
  const Routing routing = routing_with(gate);
  EXPECT_TRUE(at::equal(routing.gate, at::ones({2})));
  routing.gate.sum().backward();
  EXPECT_TRUE(at::allclose(gate.grad().flatten(), torch::tensor({4.0, 2.0})));
}

}  // namespace sparsight::gate_sums_test
