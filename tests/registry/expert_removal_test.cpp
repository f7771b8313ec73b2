// What every registered router and kind of experts declares about removing experts (moe/expert_removal.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sparsight/io/weights.h"
#include "tests/registry/layers.h"
#include "tests/support/near.h"

namespace sparsight::expert_removal_test {
namespace {

constexpr int64_t kExperts = 6, kWidth = 8, kImages = 3, kPerImage = 10;
const std::vector<int64_t> kKept{0, 2, 3, 5}, kGone{1, 4};

struct RouterForm {
  std::string name, router;
  Json settings = Json::object();
};

// Every router as it is, and settings whose gates or choices are others.
std::vector<RouterForm> router_forms() {
  std::vector<RouterForm> forms;
  for (const std::string& name : routers().names()) forms.push_back({name, name});
  forms.push_back({"renormalized", "softmax_topk", {{"renormalize", true}}});
  forms.push_back({"one_cosine", "cosine", {{"renormalize", "off"}}});
  forms.push_back({"two_cosines", "cosine", {{"k", 2}}});
  forms.push_back({"grouped_biases", "sigmoid_bias", {{"groups", 2}}});
  forms.push_back({"best_of_batchwise", "balanced_batchwise", {{"eval_k", 2}}});
  forms.push_back({"sigmoid_sinkhorn", "sinkhorn", {{"gate", "sigmoid"}}});
  forms.push_back({"few_of_all", "dense_softmax", {{"eval_k", 2}}});
  return forms;
}

std::map<std::string, at::Tensor> tensors_of(const torch::nn::Module& module) {
  std::map<std::string, at::Tensor> all;
  for (const auto& [name, tensor] : named_weights(module)) all[name] = tensor;
  return all;
}

// The first channel is large in all of them.
at::Tensor tokens() {
  at::Tensor x = test::random_tensor({kImages * kPerImage, kWidth}, 3, torch::kFloat) * 0.3;
  x.select(1, 0).fill_(4);
  return x;
}

// Makes the logits of the experts that leave the smallest for these tokens.
void shut(MoeLayer& layer) {
  const torch::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> own = tensors_of(layer.router());
  for (const int64_t expert : kGone) {
    if (own.contains("codebook")) {
      const at::Tensor direction = own.at("projector").mv(tokens().mean(0)) + own.at("projector_bias");
      own.at("codebook").select(1, expert).copy_(-direction);
    } else if (own.contains("weight")) {
      const at::Tensor row = own.at("weight").select(0, expert);
      row.zero_();
      row.select(0, 0).fill_(-20);
    }
  }
}

Routing decide(MoeLayer& layer) { return layer.route({tokens(), {kImages, kPerImage, 1, 3, 3}}); }

// {(token, expert): gate} of the experts that stay, with their numbers in a layer without the others.
std::map<std::pair<int64_t, int64_t>, double> assignments(const Routing& routing, bool renumbered) {
  std::map<std::pair<int64_t, int64_t>, double> all;
  for (int64_t a = 0; a < routing.token.size(0); ++a) {
    int64_t expert = routing.expert[a].item<int64_t>();
    if (renumbered) {
      const auto place = std::ranges::find(kKept, expert);
      if (place == kKept.end()) continue;
      expert = place - kKept.begin();
    }
    all[{routing.token[a].item<int64_t>(), expert}] = routing.gate[a].item<double>();
  }
  return all;
}

// Gates as shares of those of their token.
void divide_by_sums(std::map<std::pair<int64_t, int64_t>, double>& gates) {
  std::map<int64_t, double> sums;
  for (const auto& [assignment, gate] : gates) sums[assignment.first] += gate;
  for (auto& [assignment, gate] : gates) gate /= sums.at(assignment.first);
}

std::shared_ptr<MoeLayer> without_gone(MoeLayer& layer, const RouterForm& form) {
  auto small =
      test::make_layer({.router = form.router, .experts = std::ssize(kKept), .router_settings = form.settings});
  const torch::NoGradGuard no_grad;
  const at::Tensor kept = at::tensor(kKept, torch::kLong);
  std::map<std::string, at::Tensor> from = tensors_of(layer.router());
  for (const ExpertAxis& axis : layer.router().expert_removal().tensors)
    from.at(axis.tensor) = from.at(axis.tensor).index_select(axis.axis, kept);
  for (auto& [name, tensor] : tensors_of(small->router())) tensor.copy_(from.at(name));
  return small;
}

}  // namespace

class RemovedRows : public ::testing::TestWithParam<RouterForm> {
 protected:
  std::shared_ptr<MoeLayer> layer() const {
    return test::make_layer({.router = GetParam().router, .experts = kExperts, .router_settings = GetParam().settings});
  }
};

// A router refuses in one line, or names every tensor that has an axis of experts.
TEST_P(RemovedRows, AreDeclared) {
  const auto made = layer();
  const RouterRemoval removal = made->router().expert_removal();
  if (!removal.refusal.empty()) {
    EXPECT_EQ(removal.refusal.find('\n'), std::string::npos);
    EXPECT_EQ(removal.refusal.find("Router::expert_removal"), std::string::npos) << "the default";
    return;
  }
  const std::map<std::string, at::Tensor> own = tensors_of(made->router());
  std::map<std::string, int64_t> declared;
  for (const ExpertAxis& axis : removal.tensors) {
    ASSERT_TRUE(own.contains(axis.tensor)) << axis.tensor;
    EXPECT_EQ(own.at(axis.tensor).size(axis.axis), kExperts) << axis.tensor;
    declared[axis.tensor] = axis.axis;
  }
  for (const auto& [name, tensor] : own)
    EXPECT_EQ(std::ranges::count(tensor.sizes(), kExperts), declared.contains(name) ? 1 : 0) << name;
}

TEST_P(RemovedRows, LeaveTheRoutingAsDeclared) {
  const auto made = layer();
  const RouterRemoval removal = made->router().expert_removal();
  if (!removal.refusal.empty() || removal.keeps == KeptRouting::nothing) return;
  shut(*made);
  const Routing before = decide(*made), after = decide(*without_gone(*made, GetParam()));
  const at::Tensor load = before.chosen_count;
  const bool unused = load[kGone[0]].item<int64_t>() + load[kGone[1]].item<int64_t>() == 0;
  const bool takes_tokens = before.per_token == 0, takes_all = before.per_token == kExperts && !before.varying;
  EXPECT_TRUE(unused || takes_tokens || takes_all) << load;
  if (!unused && removal.keeps != KeptRouting::gates) return;  // nothing is promised
  auto expected = assignments(before, true), found = assignments(after, false);
  if (removal.keeps == KeptRouting::choices) divide_by_sums(expected), divide_by_sums(found);
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [assignment, gate] : expected) {
    ASSERT_TRUE(found.contains(assignment)) << assignment.first << " " << assignment.second;
    EXPECT_NEAR(found.at(assignment), gate, 1e-5) << assignment.first << " " << assignment.second;
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, RemovedRows, ::testing::ValuesIn(router_forms()),
                         [](const auto& form) { return form.param.name; });

// A kind refuses, or all of its tensors begin with the axis of experts and its hidden units can be exchanged (that they
// can, tests/models/merge_experts_test.cpp checks).
TEST(RemovedExperts, AreDeclared) {
  for (const std::string& name : expert_kinds().names()) {
    constexpr int64_t kFew = 4;  // norm_conv divides 8 channels among them
    const auto made = test::make_layer({.kind = name, .experts = kFew});
    const ExpertTensors declared = made->experts().expert_tensors();
    EXPECT_EQ(declared.refusal.find("Experts::expert_tensors"), std::string::npos) << name << ": the default";
    if (!declared.refusal.empty() || declared.modules) continue;
    const std::map<std::string, at::Tensor> own = tensors_of(made->experts());
    for (const auto& [tensor, value] : own) EXPECT_EQ(value.size(0), kFew) << name << " " << tensor;
    for (const HiddenUnits& units : declared.hidden)
      for (const HiddenUnits::Side& side : units.sides) {
        ASSERT_TRUE(own.contains(side.tensor)) << name << " " << side.tensor;
        EXPECT_EQ(own.at(side.tensor).size(side.axis), side.parts * 12) << name << " " << side.tensor;
      }
  }
}

}  // namespace sparsight::expert_removal_test
