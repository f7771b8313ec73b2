// What a router of one's own may get wrong, each mistake an error of one line that names the router, the layer and what
// is wrong; and what it may not be blamed for.
#include "sparsight/moe/validate_routing.h"

#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/register_moe.h"
#include "tests/moe/routers/token_batch.h"
#include "tests/support/errors.h"
#include "tests/support/random_tensor.h"

namespace sparsight::validate_routing_test {
namespace {

constexpr int64_t kTokens = 5, kExperts = 3;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

using Edit = std::function<void(Routing&)>;

// Token j goes to experts j and j + 1 modulo 3, with gates of .6 and .4; then something is done to that.
class EditedRouter : public Router {
 public:
  explicit EditedRouter(Edit edit) : edit_(std::move(edit)) {}

 protected:
  Routing choose(const RouterInput& input) override {
    Routing r;
    r.tokens = input.tokens.size(0);
    r.experts = kExperts;
    r.clean_logits = r.noisy_logits = torch::zeros({r.tokens, kExperts});
    const at::Tensor first = torch::arange(r.tokens, torch::kLong).unsqueeze(1);
    const at::Tensor expert = torch::cat({first, first + 1}, 1).remainder(kExperts);
    choose_per_token(r, expert, torch::tensor({.6f, .4f}).expand({r.tokens, 2}).contiguous());
    finish_routing(r);
    edit_(r);
    return r;
  }

 private:
  Edit edit_;
};

at::Tensor tokens() { return test::random_tensor({kTokens, 4}, 3, torch::kFloat); }

std::string routing_error(const Edit& edit, const at::Tensor& x = tokens()) {
  EditedRouter router(edit);
  router.set_registered("edited", {4, kExperts});
  return testing::error_text([&] { router.route(test::token_batch(x)); });
}

// The error of a router that does this, without what they all begin with.
void expect_error(const Edit& edit, const std::string& what) {
  const std::string message = routing_error(edit),
                    begin = "the router edited of the layer blocks.1.mlp returned an invalid routing: ";
  ASSERT_TRUE(message.starts_with(begin)) << '"' << message << "\", expected " << what;
  EXPECT_EQ(message.substr(begin.size()), what);
}

Edit set(at::Tensor Routing::*field, int64_t index, double value) {
  return [=](Routing& r) { (r.*field)[index] = value; };
}

Edit replace(at::Tensor Routing::*field, const at::Tensor& by) {
  return [=](Routing& r) { r.*field = by; };
}

}  // namespace

TEST(ValidateRouting, WhatIsRightPasses) {
  EXPECT_EQ(routing_error([](Routing&) {}), "");
}

TEST(ValidateRouting, IndicesOutOfRange) {
  expect_error(set(&Routing::expert, 3, 3), "expert of assignment 3 is 3, must be from 0 to 2");
  expect_error(set(&Routing::expert, 0, -1), "expert of assignment 0 is -1, must be from 0 to 2");
  expect_error(set(&Routing::token, 9, 5), "token of assignment 9 is 5, must be from 0 to 4");
  expect_error(set(&Routing::token, 0, -7), "token of assignment 0 is -7, must be from 0 to 4");
  expect_error(set(&Routing::rank, 1, 2), "rank of assignment 1 is 2, per_token allows 0 to 1");
  expect_error(set(&Routing::rank, 0, -1), "rank of assignment 0 is -1, per_token allows 0 to 1");
  // Also where the router itself computes with them: before anything is counted.
  for (const int64_t expert : {int64_t{-1}, kExperts, int64_t{1} << 60})
    expect_error(
        [=](Routing& r) {
          r.expert[4] = expert;
          finish_routing(r);
        },
        cat("expert of assignment 4 is ", expert, ", must be from 0 to 2"));
}

TEST(ValidateRouting, NumbersOfTokensAndExperts) {
  expect_error([](Routing& r) { r.tokens = 4; }, "tokens is 4, expected 5");
  expect_error([](Routing& r) { r.experts = 4; }, "experts is 4, expected 3");
  expect_error([](Routing& r) { r.experts = 0; }, "experts is 0, expected 3");
  expect_error([](Routing& r) { r.per_token = 4; },
               "per_token is 4, must be from 0 to 3: choices per token, 0 if experts choose");
}

TEST(ValidateRouting, ShapesAndTypes) {
  expect_error(replace(&Routing::gate, torch::ones({9})), "gate has the shape [9], expected [10]");
  expect_error(replace(&Routing::gate, torch::ones({10}, torch::kBFloat16)),
               "gate is BFloat16, expected Float (Double for fp64 weights)");
  expect_error(replace(&Routing::gate, {}), "gate is undefined; set it to the weight of each assignment, [A]");
  expect_error(replace(&Routing::token, torch::zeros({10}, torch::kInt)), "token is Int, expected Long");
  expect_error(replace(&Routing::rank, torch::zeros({9}, torch::kLong)), "rank has the shape [9], expected [10]");
  expect_error(replace(&Routing::expert, torch::zeros({5, 2}, torch::kLong)),
               "expert must be int64 [A], one entry per assignment; choose_per_token() sets it");
  expect_error(replace(&Routing::kept, torch::ones({10})), "kept is Float, expected Bool");
  expect_error(replace(&Routing::clean_logits, torch::zeros({5, 4})),
               "clean_logits has the shape [5, 4], expected [5, 3]");
  expect_error(replace(&Routing::noisy_logits, torch::zeros({5})), "noisy_logits has the shape [5], expected [5, 3]");
  expect_error(replace(&Routing::scores, torch::zeros({5, 3}, torch::kHalf)),
               "scores is Half, expected Float (Double for fp64 weights)");
  expect_error(replace(&Routing::noise_scale, torch::ones({3})), "noise_scale has the shape [3], expected [5, 3]");
  expect_error(replace(&Routing::threshold, torch::ones({2})), "threshold has the shape [2], expected [3]");
  expect_error(replace(&Routing::smooth_load, torch::ones({2})), "smooth_load has the shape [2], expected [3]");
  expect_error(replace(&Routing::offsets, torch::zeros({3}, torch::kLong)), "offsets has the shape [3], expected [4]");
  expect_error(replace(&Routing::order, torch::zeros({10})), "order is Float, expected Long");
  expect_error(
      [](Routing& r) {
        choose_per_token(r, torch::zeros({4, 2}, torch::kLong), torch::ones({4, 2}));
      },
      "choose_per_token() takes expert and gate [5,K], got [4, 2] and [4, 2]");
}

TEST(ValidateRouting, Order) {
  expect_error(
      [](Routing& r) {
        r.token = r.token.flip(0);
        finish_routing(r);
      },
      "assignment 2 (token 3, expert 1, rank 0) comes after (token 4, expert 1, rank 1); sort them by token and rank");
  expect_error([](Routing& r) { r.rank.fill_(1); },
               "assignment 1 (token 0, expert 1, rank 1) comes after (token 0, expert 0, rank 1); "
               "sort them by token and rank");
}

TEST(ValidateRouting, ATokenHasAnExpertOnce) {
  expect_error(
      [](Routing& r) {
        r.expert[1] = r.expert[0];
        finish_routing(r);
      },
      "token 0 has expert 0 twice");
}

TEST(ValidateRouting, WhereExpertsChooseAnyOrderWillDo) {
  const Edit reversed = [](Routing& r) {
    r.per_token = 0;
    for (at::Tensor* tensor : {&r.token, &r.expert, &r.rank, &r.gate}) *tensor = tensor->flip(0);
    finish_routing(r);
  };
  EXPECT_EQ(routing_error(reversed), "");
  expect_error(
      [&](Routing& r) {
        reversed(r);
        r.token[0] = 0, r.expert[0] = 0;  // which token 0 has at the end
        finish_routing(r);
      },
      "token 0 has expert 0 twice");
}

TEST(ValidateRouting, GroupsThatAreMissingOrOld) {
  const std::string
      missing = "kept, chosen_count, order or offsets is undefined; call finish_routing(routing) last",
      old = "chosen_count, order or offsets do not match the assignments; call finish_routing(routing) last";
  for (at::Tensor Routing::*field : {&Routing::order, &Routing::offsets, &Routing::chosen_count, &Routing::kept})
    expect_error(replace(field, {}), missing);
  expect_error(set(&Routing::order, 0, 10), old);
  expect_error(set(&Routing::order, 0, -1), old);
  expect_error(set(&Routing::order, 0, 1), old);  // of another expert
  expect_error(set(&Routing::offsets, 3, 11), old);
  expect_error(set(&Routing::offsets, 1, 9), old);
  expect_error(set(&Routing::offsets, 0, 1), old);
  expect_error(set(&Routing::chosen_count, 2, 5), old);
  expect_error(set(&Routing::kept, 4, 0), old);
  expect_error([](Routing& r) { select_assignments(r, torch::arange(8)), r.token = r.token.narrow(0, 0, 7); },
               "token has the shape [7], expected [8]");
}

TEST(ValidateRouting, GatesThatAreNotFiniteOutOfFiniteNumbers) {
  expect_error(set(&Routing::gate, 2, kNan),
               "gate of assignment 2 is nan, although tokens, weights and logits are finite; does it divide by a sum "
               "that may be 0?");
  expect_error(
      [](Routing& r) {
        r.gate = r.gate.to(torch::kDouble);
        r.gate[7] = -std::numeric_limits<double>::infinity();
      },
      "gate of assignment 7 is -inf, although tokens, weights and logits are finite; does it divide by a sum that may "
      "be "
      "0?");
  // Not the router's fault: a token, a logit, a weight.
  at::Tensor broken = tokens();
  broken[4][1] = kNan;
  EXPECT_EQ(routing_error(set(&Routing::gate, 2, kNan), broken), "");
  EXPECT_EQ(routing_error([](Routing& r) {
              r.gate[2] = kNan;
              r.clean_logits = torch::full({kTokens, kExperts}, kNan, torch::kFloat);
            }),
            "");
  EditedRouter diverged(set(&Routing::gate, 2, kNan));
  diverged.register_parameter("weight", torch::full({3}, kNan));
  EXPECT_NO_THROW(diverged.route(test::token_batch(tokens())));
}

TEST(ValidateRouting, WithoutARegistryItsClassIsNamed) {
  EditedRouter router(set(&Routing::expert, 3, 3));
  const std::string message = testing::error_text([&] { router.route(test::token_batch(tokens())); });
  EXPECT_NE(message.find("EditedRouter of the layer blocks.1.mlp"), std::string::npos) << message;
}

TEST(ValidateRouting, EveryRegisteredRouterKnowsItsNameAndShape) {
  for (const std::string& name : routers().names()) {
    const auto router = make_router({{"router", {{"name", name}}}}, {8, 4});
    EXPECT_EQ(router->registered_name(), name);
    EXPECT_EQ(router->registered_shape().experts, 4);
  }
}

TEST(ValidateRouting, SoftRoutings) {
  class BadMixer : public SoftRouter {
    SoftRouting mix(const RouterInput& input) override {
      SoftRouting soft;
      soft.layout = input.layout;
      soft.experts = soft.slots = 1;
      return soft;
    }
  } mixer;
  mixer.set_registered("bad_mixer", {4, 1});
  EXPECT_EQ(testing::error_text([&] { mixer.route(test::token_batch(tokens())); }),
            "the router bad_mixer of the layer blocks.1.mlp returned an invalid routing: dispatch is undefined");

  SoftRouting soft;
  soft.layout = {1, kTokens, 0, 0, 0};
  soft.experts = kExperts;
  soft.slots = 2;
  soft.dispatch = soft.combine = torch::ones({1, kTokens, 6});
  const RoutingRequest request{tokens(), kExperts, {}};
  const auto error = [&](const std::function<void(SoftRouting&)>& edit) {
    SoftRouting edited = soft;
    edit(edited);
    return testing::error_text([&] { validate_routing(edited, request); });
  };
  EXPECT_EQ(error([](SoftRouting&) {}), "");
  EXPECT_EQ(error([](SoftRouting& s) { s.experts = 4; }),
            "it has 4 experts of 2 slots, expected 3 experts of 1 to 2147483648 slots");
  EXPECT_EQ(error([](SoftRouting& s) { s.layout.per_image = 4; }),
            "its layout has 1 images of 4 tokens, expected 5 tokens");
  EXPECT_EQ(error([](SoftRouting& s) { s.layout.images = s.layout.per_image = int64_t{1} << 40; }),
            "its layout has 1099511627776 images of 1099511627776 tokens, expected 5 tokens");
  EXPECT_EQ(error([](SoftRouting& s) { s.slots = int64_t{1} << 62; }),
            "it has 3 experts of 4611686018427387904 slots, expected 3 experts of 1 to 2147483648 slots");
  EXPECT_EQ(error([](SoftRouting& s) { s.combine = at::Tensor(); }), "combine is undefined");
  EXPECT_EQ(error([](SoftRouting& s) {
              s.dispatch = torch::ones({1, kTokens, 5});
            }),
            "dispatch has the shape [1, 5, 5], expected [1, 5, 6]");
}

}  // namespace sparsight::validate_routing_test
