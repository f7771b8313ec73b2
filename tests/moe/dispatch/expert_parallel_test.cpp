#include "sparsight/moe/dispatch/expert_parallel.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sparsight/dist/gradient_sum.h"
#include "sparsight/dist/join.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/nn/init.h"
#include "tests/dist/ranks.h"
#include "tests/support/random_tensor.h"

namespace sparsight {
namespace {

constexpr int64_t kWidth = 6, kExperts = 8;

struct Case {
  std::string name;
  Json sections;  // [moe], [router] ...
};

std::vector<Case> cases() {
  const auto one = [](const std::string& name, Json router, Json experts = {{"name", "mlp"}},
                      Json moe = Json::object()) {
    return Case{name,
                {{"moe", std::move(moe)},
                 {"losses", Json::object()},
                 {"router", std::move(router)},
                 {"experts", std::move(experts)}}};
  };
  return {one("top2", {{"name", "softmax_topk"}, {"k", 2}}),
          one("top_p", {{"name", "top_p"}}),
          one("hash", {{"name", "hash"}, {"k", 1}}),
          one("per_image", {{"name", "per_image"}}),
          one("dropout", {{"name", "softmax_topk"}, {"k", 2}}, {{"name", "mlp"}, {"dropout", 0.5}}),
          one("recompute", {{"name", "softmax_topk"}, {"k", 1}}, {{"name", "mlp"}, {"recompute", true}}),
          one("shared", {{"name", "softmax_topk"}, {"k", 1}}, {{"name", "mlp"}}, {{"shared", 1}}),
          one("soft_moe", {{"name", "soft_moe"}})};
}

std::shared_ptr<MoeLayer> make_layer(const Case& one, at::ScalarType type, const dist::GroupPtr& group) {
  MoeSpec spec = read_moe_spec(one.sections);
  spec.options.experts = kExperts;
  if (group) {
    spec.dispatcher = expert_parallel_dispatcher(group);
    const auto make = spec.make_kind;
    spec.make_kind = [make, ranks = group->size()](ExpertShape shape) {
      if (shape.experts == kExperts) shape.experts /= ranks;  // not the shared ones
      return make(shape);
    };
  }
  auto layer = std::make_shared<MoeLayer>(spec, LayerContext{"moe", kWidth, 5});
  initialize(*layer, 1);
  layer->to(type);
  return layer;
}

bool is_expert(const std::string& name) { return name.starts_with("experts."); }

// The weights of the whole layer, far from zero, on a rank: of experts its own.
void copy_weights(MoeLayer& whole, MoeLayer& part, const dist::Group& group) {
  const torch::NoGradGuard no_grad;
  const auto parameters = whole.named_parameters();
  for (auto& own : part.named_parameters()) {
    const at::Tensor& from = *parameters.find(own.key());
    own.value().copy_(is_expert(own.key())
                          ? from.narrow(0, group.rank() * from.size(0) / group.size(), from.size(0) / group.size())
                          : from);
  }
}

// Images of three tokens: on a rank those from first on.
MoeInput input_of(const at::Tensor& tokens, int64_t first, int64_t images) {
  MoeInput input{tokens.narrow(0, 3 * first, 3 * images), {images, 3, 0, 0, 0}, ForwardMode::training(), {5, 6}, {}};
  input.context.image = at::arange(first, first + images);
  return input;
}

// How many images each rank has: unequal numbers, and none.
std::vector<int64_t> shares(int64_t ranks) {
  if (ranks == 1) return {9};
  if (ranks == 2) return {7, 2};
  return {4, 0, 3, 2};
}

}  // namespace

TEST(ExpertParallel, S31_S32_RanksHaveTheOutputsAndGradientsOfOneProcess) {
  if (!dist::is_available()) GTEST_SKIP() << "built without gloo";
  for (const at::ScalarType type : {torch::kDouble, torch::kFloat})
    for (const Case& one : cases()) {
      const double tolerance = type == torch::kDouble ? 1e-12 : 1e-6;
      const at::Tensor tokens = test::random_tensor({27, kWidth}, 3, type),
                       upstream = test::random_tensor({27, kWidth}, 4, type);
      const auto whole = make_layer(one, type, nullptr);
      {
        const torch::NoGradGuard no_grad;
        for (at::Tensor& p : whole->parameters()) p.mul_(10);
      }
      const at::Tensor x = tokens.clone().requires_grad_(true);
      const MoeOutput want = whole->forward(input_of(x, 0, 9));
      (want.tokens * upstream).sum().backward();
      const auto gradients = whole->named_parameters();
      for (const int64_t ranks : {1, 2, 4}) {
        SCOPED_TRACE(one.name + " on " + std::to_string(ranks) + " ranks");
        EXPECT_TRUE(test::none_failed(test::run_ranks(ranks, [&](const dist::GroupPtr& group) {
          int64_t first = 0;
          const std::vector<int64_t> images = shares(ranks);
          for (int64_t r = 0; r < group->rank(); ++r) first += images[static_cast<size_t>(r)];
          const int64_t count = images[static_cast<size_t>(group->rank())];
          const auto layer = make_layer(one, type, group);
          copy_weights(*whole, *layer, *group);
          const at::Tensor own = tokens.clone().requires_grad_(true);
          const MoeOutput out = layer->forward(input_of(own, first, count));
          const auto part = [&](const at::Tensor& all) { return all.narrow(0, 3 * first, 3 * count); };
          EXPECT_TRUE(at::allclose(out.tokens, part(want.tokens), tolerance, tolerance));
          if (!out.routing.soft) {  // exactly the choices of the whole batch
            const at::Tensor mine =
                (want.routing.token >= 3 * first).logical_and(want.routing.token < 3 * (first + count));
            EXPECT_TRUE(out.routing.expert.equal(want.routing.expert.masked_select(mine)));
          }
          (out.tokens * part(upstream)).sum().backward();
          EXPECT_TRUE(at::allclose(part(own.grad()), part(x.grad()), tolerance, 10 * tolerance));
          std::vector<at::Tensor> shared;  // what every rank has is summed over ranks, experts are not
          for (auto& p : layer->named_parameters())
            if (!is_expert(p.key())) shared.push_back(p.value());
          dist::GradientSum sum(group, shared);
          sum.add();
          sum.finish();
          for (auto& p : layer->named_parameters()) {
            const at::Tensor all = gradients.find(p.key())->grad();
            ASSERT_EQ(p.value().grad().defined(), all.defined()) << p.key();
            if (!all.defined()) continue;
            const int64_t experts = kExperts / ranks;
            const at::Tensor grad = is_expert(p.key()) ? all.narrow(0, group->rank() * experts, experts) : all;
            EXPECT_TRUE(at::allclose(p.value().grad(), grad, tolerance, 10 * tolerance)) << p.key();
          }
        })));
      }
    }
}

TEST(ExpertParallel, S31_GradientsOfExpertsFollowDifferencesOverRanks) {
  if (!dist::is_available()) GTEST_SKIP() << "built without gloo";
  const Case one = cases().front();
  const at::Tensor tokens = test::random_tensor({27, kWidth}, 3, torch::kDouble);
  EXPECT_TRUE(test::none_failed(test::run_ranks(2, [&](const dist::GroupPtr& group) {
    const auto layer = make_layer(one, torch::kDouble, group);
    const int64_t first = group->rank() == 0 ? 0 : 7, count = group->rank() == 0 ? 7 : 2;
    const auto loss = [&] {
      const at::Tensor own = layer->forward(input_of(tokens, first, count)).tokens.pow(2).sum();
      return std::pair{own, group->all_gather(own.detach().reshape({1})).sum().item<double>()};
    };
    loss().first.backward();
    for (const char* const name : {"experts.w1", "experts.w2", "experts.b1", "experts.b2"})
      for (int64_t rank = 0; rank < 2; ++rank)  // whose expert is changed; all ranks compute
        for (int64_t i = 0; i < 40; i += 13) {
          at::Tensor& p = *layer->named_parameters().find(name);
          const torch::NoGradGuard no_grad;
          const at::Tensor element = p.view({-1}).narrow(0, i % p.numel(), 1);
          const auto at_offset = [&](double offset) {
            if (group->rank() == rank) element.add_(offset);
            const double value = loss().second;
            if (group->rank() == rank) element.sub_(offset);
            return value;
          };
          const double step = 1e-6, difference = (at_offset(step) - at_offset(-step)) / (2 * step);
          if (group->rank() == rank) {
            EXPECT_NEAR(p.grad().view({-1})[i % p.numel()].item<double>(), difference,
                        1e-7 + 1e-6 * std::abs(difference))
                << name;
          }
        }
  })));
}

TEST(ExpertParallel, ExpertsThatCannotBeSpreadEquallySaySo) {
  if (!dist::is_available()) GTEST_SKIP() << "built without gloo";
  const at::Tensor tokens = test::random_tensor({27, kWidth}, 3, torch::kFloat);
  for (const std::string& error : test::run_ranks(3, [&](const dist::GroupPtr& group) {
         MoeSpec spec = read_moe_spec(cases().front().sections);
         spec.dispatcher = expert_parallel_dispatcher(group);
         MoeLayer layer(spec, LayerContext{"moe", kWidth, 5});
         group->barrier();  // all have joined
         layer.forward(input_of(tokens, 0, 9));
       }))
    EXPECT_EQ(error, "8 experts cannot be spread equally over 3 ranks; choose a multiple of it as moe.experts");
}

}  // namespace sparsight
