// A program made by hand (engine/program.h): an MLP with one MoE layer whose values are worked out here.
#include "sparsight/engine/program.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>
#include <vector>

#include "sparsight/engine/program_builder.h"
#include "sparsight/engine/routers/top_k.h"
#include "sparsight/engine/steps/experts.h"
#include "sparsight/engine/steps/maps.h"
#include "sparsight/engine/steps/rows.h"
#include "sparsight/kernels/threads/own_threads.h"
#include "tests/support/platform.h"

namespace sparsight::engine {
namespace {

// Images of two numbers x, which are the only token. Two experts, 2 x and 3 x; the logits of the router are x. The
// answer is x + the experts' outputs.
Program two_experts(int64_t k, Gates gates, CapacityOptions capacity = {}, double factor = 0) {
  ProgramBuilder builder({.channels = 1, .height = 1, .width = 2, .mean = {}, .std = {}}, {});
  const Value token = builder.planes();
  builder.add_route(
      "mlp", token,
      std::make_unique<TopKRouter>(RouterLogits(LinearMap({1, 0, 0, 1}, 2, 2, true)), TopKRule{.k = k, .gates = gates}),
      {std::move(capacity), factor, GateRule::router});
  std::vector<ExpertLinear> layers;
  layers.push_back({2, 2, 2, {2, 0, 0, 2, 3, 0, 0, 3}, {}});
  const Value y =
      builder.add<ExpertsStep>("mlp", builder.find_routing("mlp"), token, token, builder.new_value(token.shape),
                               std::make_unique<LayeredExperts>(std::move(layers), Activation::relu), 1);
  return builder.finish(y, y);
}

std::vector<float> run(const Program& program, const std::vector<float>& pixels, int64_t images) {
  Session session;
  cpu::OwnThreads threads(1);
  const Answer answer = program.run(session, threads, {.pixels = pixels.data(), .images = images});
  return {answer.logits, answer.logits + images * program.classes()};
}

// softmax(1, 0) = 0.7310586, 0.2689414. x = (1, 0): the first expert, 1 + 0.7310586 * 2; x = (0, 1): the second one,
// 1 + 0.7310586 * 3.
TEST(Program, AddsTheChosenExpertTimesItsProbability) {
  const std::vector<float> y = run(two_experts(1, Gates::probability), {1, 0, 0, 1}, 2);
  EXPECT_NEAR(y[0], 2.4621172, 1e-6);
  EXPECT_NEAR(y[1], 0, 1e-7);
  EXPECT_NEAR(y[2], 0, 1e-7);
  EXPECT_NEAR(y[3], 3.1931758, 1e-6);
}

// Both experts: 1 + 0.7310586 * 2 + 0.2689414 * 3.
TEST(Program, AddsAllChosenExperts) {
  EXPECT_NEAR(run(two_experts(2, Gates::of_chosen), {1, 0}, 1)[0], 3.2689414, 1e-6);
}

// One expert of two: the softmax over it alone is 1, and sigmoid(1) = 0.7310586.
TEST(Program, HasGatesOfTheChosenAndSigmoids) {
  EXPECT_NEAR(run(two_experts(1, Gates::of_chosen), {1, 0}, 1)[0], 3, 1e-6);
  EXPECT_NEAR(run(two_experts(1, Gates::sigmoid), {1, 0}, 1)[0], 2.4621172, 1e-6);
}

// Four tokens for the first expert, whose capacity is 0.5 * 4 / 2 = 1: only the first token keeps it; with priority the
// one with the highest probability.
TEST(Program, DropsWhatExceedsTheCapacity) {
  CapacityOptions capacity;
  const std::vector<float> pixels{1, 0, 2, 0, 3, 0, 1, 0};
  const std::vector<float> first = run(two_experts(1, Gates::of_chosen, capacity, 0.5), pixels, 4);
  EXPECT_EQ((std::vector<float>{first[0], first[2], first[4], first[6]}), (std::vector<float>{3, 2, 3, 1}));
  capacity.priority = "max_gate";
  const std::vector<float> best = run(two_experts(1, Gates::of_chosen, capacity, 0.5), pixels, 4);
  EXPECT_EQ((std::vector<float>{best[0], best[2], best[4], best[6]}), (std::vector<float>{1, 2, 9, 1}));
}

TEST(Program, LetsItsHookReplaceADecision) {
  const Program program = two_experts(1, Gates::of_chosen);
  Session session;
  cpu::OwnThreads threads(1);
  const std::vector<float> pixels{1, 0};
  std::string layer;
  const auto second_expert = [&](const RouteStep& step, Routing& routing) {
    layer = step.layer();
    routing.expert[0] = 1;
    routing.keep_all();
  };
  const Answer answer = program.run(session, threads, {.pixels = pixels.data(), .images = 1}, second_expert);
  EXPECT_EQ(layer, "mlp");
  EXPECT_EQ(answer.logits[0], 4);
  EXPECT_EQ(answer.routings[0].expert[0], 1);
}

TEST(Program, AnswersManyThreadsAtATime) {
  SKIP_WITHOUT_THREADS();
  const Program program = two_experts(2, Gates::of_chosen);
  std::vector<std::thread> callers;
  std::vector<float> answers(4);
  for (size_t i = 0; i < answers.size(); ++i)
    callers.emplace_back([&, i] {
      Session session;
      cpu::OwnThreads threads(1);
      const std::vector<float> pixels{static_cast<float>(i), 0};
      for (int repeat = 0; repeat < 100; ++repeat)
        answers[i] = program.run(session, threads, {.pixels = pixels.data(), .images = 1}).logits[0];
    });
  for (std::thread& caller : callers) caller.join();
  for (size_t i = 0; i < answers.size(); ++i) {
    const double x = static_cast<double>(i), gate = 1 / (1 + std::exp(-x));
    EXPECT_NEAR(answers[i], x + gate * 2 * x + (1 - gate) * 3 * x, 1e-5);
  }
}

// The values of the two norms and of the sum between them never live at the same time.
TEST(Program, ReusesTheMemoryOfValuesThatNobodyReadsAgain) {
  ProgramBuilder builder({.channels = 1, .height = 1, .width = 4, .mean = {}, .std = {}}, {});
  Value x = builder.planes();
  for (int i = 0; i < 5; ++i)
    x = builder.add<ElementwiseStep>(x, Value{}, builder.new_value(x.shape), Elementwise::identity,
                                     std::vector<float>(4, 2.0F));
  const Program program = builder.finish(x, x);
  EXPECT_EQ(program.bytes_per_image(), 2 * 4 * 4);
  EXPECT_EQ(run(program, {1, 2, 3, 4}, 1), (std::vector<float>{32, 64, 96, 128}));
}

}  // namespace
}  // namespace sparsight::engine
