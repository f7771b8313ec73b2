// Whatever a router of one's own does wrong, a layer with it either works or raises an Error of one line that names the
// router and the layer; nothing else gets through. What is wrong with a routing in detail: validate_routing_test.cpp.
#include "tests/moe/own_router.h"
#include "tests/support/errors.h"

namespace sparsight::router_mistakes_test {

using namespace testing::own_router;

TEST(RouterMistakes, ARightRouterRuns) {
  EXPECT_EQ(error_text([] { run(Mistakes{}); }), "");
  EXPECT_EQ(error_text([] { run(Mistakes{}, 1.0); }), "");
}

// Every field of a routing, damaged in every way, before or after finish_routing(), with and without capacity: right
// or an Error. The address sanitizer sees what is read out of bounds.
TEST(RouterMistakes, AnyDamagedFieldIsRightOrAnError) {
  const std::vector<std::pair<std::string, at::Tensor Routing::*>> fields{
      {"token", &Routing::token},
      {"expert", &Routing::expert},
      {"rank", &Routing::rank},
      {"gate", &Routing::gate},
      {"kept", &Routing::kept},
      {"chosen_count", &Routing::chosen_count},
      {"order", &Routing::order},
      {"offsets", &Routing::offsets},
      {"clean_logits", &Routing::clean_logits},
      {"noisy_logits", &Routing::noisy_logits},
      {"scores", &Routing::scores},
      {"noise_scale", &Routing::noise_scale},
      {"smooth_load", &Routing::smooth_load},
      {"threshold", &Routing::threshold},
      {"group", &Routing::group},
      {"valid", &Routing::valid},
      {"priority", &Routing::priority},
      {"target", &Routing::target},
      {"capacity", &Routing::capacity},
      {"position", &Routing::position},
  };
  const auto ways = damages();
  int refused = 0, tried = 0;
  for (const auto& [name, field] : fields)
    for (size_t way = 0; way < ways.size(); ++way)
      for (const bool early : {true, false})
        for (const double capacity : {0.0, 0.5}) {
          const auto damage = [&, field = field](Routing& r) {
            const at::Tensor before = r.*field;
            r.*field = ways[way](before.defined() ? before : torch::ones({kExperts}));
          };
          Mistakes mistakes;
          (early ? mistakes.early : mistakes.late) = damage;
          const std::string message = error_text([&] { run(mistakes, capacity); });
          ++tried;
          if (message.empty()) continue;
          ++refused;
          EXPECT_TRUE(message.starts_with(kTitle) && message.find('\n') == std::string::npos)
              << name << " damaged in way " << way << (early ? " early" : " late") << ": " << message;
        }
  EXPECT_GT(refused, tried / 3);
}

TEST(RouterMistakes, AnyDamagedNumberIsRightOrAnError) {
  for (int64_t Routing::*field : {&Routing::tokens, &Routing::experts, &Routing::per_token, &Routing::group_count})
    for (const int64_t value : {int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{1} << 40, int64_t{1} << 62})
      for (const bool early : {true, false}) {
        Mistakes mistakes;
        (early ? mistakes.early : mistakes.late) = [=](Routing& r) { r.*field = value; };
        const std::string message = error_text([&] { run(mistakes, 0.5); });
        EXPECT_TRUE(message.empty() || (message.starts_with(kTitle) && message.find('\n') == std::string::npos))
            << message;
      }
}

// Capacity decides again what is kept: a second assignment to an expert is wrong even if the router does not keep it.
TEST(RouterMistakes, AnExpertTwiceIsAnErrorEvenIfItIsNotKept) {
  Mistakes mistakes;
  mistakes.early = [](Routing& r) {
    r.expert[1] = r.expert[0];
    r.kept = torch::ones({2 * kTokens}, torch::kBool);
    r.kept[1] = false;
  };
  expect_error(mistakes, "returned an invalid routing: token 0 has expert 0 twice");
}

TEST(RouterMistakes, ScoresThatAreNotFiniteDoNotExcuseGates) {
  Mistakes mistakes;
  mistakes.late = [](Routing& r) {
    r.scores = r.scores / 0;
    r.gate = r.gate / (r.gate - r.gate);
  };
  expect_error(mistakes, "gate of assignment 0 is inf, although tokens, weights and logits are finite");
}

TEST(RouterMistakes, ExceptionsInChoose) {
  Mistakes mistakes;
  mistakes.on_input = [](const RouterInput&) { throw std::out_of_range("map::at"); };
  expect_error(mistakes, ": choose() failed: map::at");
  mistakes.on_input = [](const RouterInput& input) { input.tokens.matmul(torch::ones({7, 2})); };
  expect_error(mistakes, ": choose() failed: mat1 and mat2 shapes cannot be multiplied (6x4 and 7x2)");
  mistakes.on_input = [](const RouterInput& input) { router_normal(input, torch::ones({5, 3}), "noise"); };
  expect_error(mistakes, ": choose() failed: internal check failed");
  mistakes.on_input = [](const RouterInput&) { throw 3; };
  expect_error(mistakes, ": choose() failed: it threw something that is not a std::exception");
  mistakes.on_input = [](const RouterInput& input) { input.tokens.detach().mul_(2); };
  expect_error(mistakes, "returned an invalid routing: it changed its input tokens in place; work on a copy");
  mistakes.on_input = [](const RouterInput&) { fail_usage("[router] k is odd"); };  // its own message for the user
  EXPECT_EQ(testing::error_text<UsageError>([&] { run(mistakes); }), "[router] k is odd");
}

// Mixers, with whatever they return in place of a right soft routing.
class OwnMixer : public SoftRouter {
 public:
  explicit OwnMixer(std::function<void(SoftRouting&)> edit) : edit_(std::move(edit)) {}

 protected:
  SoftRouting mix(const RouterInput& input) override {
    SoftRouting soft;
    soft.layout = input.layout;
    soft.experts = kExperts;
    soft.slots = 2;
    soft.logits = torch::zeros({input.layout.images, input.layout.per_image, 2 * kExperts});
    soft.dispatch = at::softmax(soft.logits, 1);
    soft.combine = at::softmax(soft.logits, 2);
    edit_(soft);
    return soft;
  }

 private:
  std::function<void(SoftRouting&)> edit_;
};

TEST(RouterMistakes, SoftRoutings) {
  const auto error = [](const std::function<void(SoftRouting&)>& edit) {
    return error_text([&] { run(spec_with([&] { return std::make_shared<OwnMixer>(edit); })); });
  };
  EXPECT_EQ(error([](SoftRouting&) {}), "");
  expect_error(
      error([](SoftRouting& s) { s.dispatch = s.dispatch / 0; }),
      "returned an invalid routing: dispatch has NaN or infinity, although tokens, weights and logits are finite");
  for (int64_t SoftRouting::*size : {&SoftRouting::slots, &SoftRouting::experts})
    expect_error(error([&](SoftRouting& s) { s.*size = int64_t{1} << 62; }), "returned an invalid routing: ");
  for (at::Tensor SoftRouting::*field : {&SoftRouting::logits, &SoftRouting::dispatch, &SoftRouting::combine})
    for (const auto& damage : damages()) {
      const std::string message = error([&](SoftRouting& s) { s.*field = damage(s.*field); });
      EXPECT_TRUE(message.empty() || (message.starts_with(kTitle) && message.find('\n') == std::string::npos))
          << message;
    }
  for (int64_t SoftRouting::*field : {&SoftRouting::experts, &SoftRouting::slots})
    for (const int64_t value : {-1, 0, 1, 4}) {
      const std::string message = error([&](SoftRouting& s) { s.*field = value; });
      expect_error(message, "returned an invalid routing: ");
    }
  Mistakes mistakes;  // a router that chooses experts has no soft routing
  mistakes.late = [](Routing& r) { r.soft = std::make_shared<const SoftRouting>(); };
  expect_error(mistakes, "it has a soft routing; routers that mix tokens derive from SoftRouter");
}

// Two-level routings: the first level is checked, too.
TEST(RouterMistakes, FirstLevel) {
  for (const bool right : {true, false}) {
    Mistakes mistakes;
    mistakes.late = [=](Routing& r) {
      Routing groups = r;
      if (!right) groups.token = groups.token + 100;
      r.groups = std::make_shared<const Routing>(groups);
    };
    const std::string message = error_text([&] { run(mistakes); });
    if (right)
      EXPECT_EQ(message, "");
    else
      expect_error(message,
                   "returned an invalid routing: in groups: token of assignment 0 is 100, must be from 0 to 5");
  }
}

}  // namespace sparsight::router_mistakes_test
