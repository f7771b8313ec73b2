#include "sparsight/moe/moe_spec.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/moe/register_moe.h"

namespace sparsight::moe_spec_test {
namespace {

Json resolve_text(const std::string& text) {
  return resolve(Config::from_text(text, "test.toml"),
                 {plain_section<MoeOptions>("moe", ""), named_section("router", "", "softmax_topk", routers()),
                  plain_section<CapacityOptions>("capacity", ""), plain_section<LossOptions>("losses", "")});
}

}  // namespace

TEST(MoeSpec, ReadsItsFourSections) {
  const MoeSpec spec = read_moe_spec(resolve_text(
      "[moe]\nblocks = [-1, 1]\nexperts = 4\n[router]\nname = \"softmax_topk\"\nk = 1\n[capacity]\nfactor = 1.05\n"
      "[losses]\nload = 0.25\n"));
  EXPECT_EQ(spec.layers(4), (std::vector<const MoeSpec*>{nullptr, &spec, nullptr, &spec}));
  EXPECT_EQ(spec.capacity.factor, 1.05);
  for (size_t i = 0; i < routing_losses().size(); ++i)
    EXPECT_EQ(spec.losses.weights[i], routing_losses()[i].name == "load" ? 0.25 : -1);
  const auto router = spec.make_router({3, 4});
  const Routing routing = router->route({torch::ones({2, 3}), {1, 2, 0, 0, 0}, "moe", {}});
  EXPECT_EQ(routing.per_token, 1);
  EXPECT_EQ(routing.experts, 4);
}

TEST(MoeSpec, MakesTheKindOfExpertThatItsSectionNames) {
  const Json resolved{{"moe", {{"experts", 4}, {"hidden", 6}, {"shared", 2}, {"shared_hidden", 5}}},
                      {"experts", {{"name", "swiglu"}}},
                      {"capacity", Json::object()},
                      {"losses", Json::object()},
                      {"router", {{"name", "softmax_topk"}}}};
  const MoeSpec spec = read_moe_spec(resolved);
  const auto experts = spec.make_experts(3, 100), shared = spec.make_shared_experts(3, 100);
  EXPECT_EQ(experts->named_parameters()["w1"].sizes(), (std::vector<int64_t>{4, 3, 12}));
  EXPECT_EQ(shared->named_parameters()["w1"].sizes(), (std::vector<int64_t>{2, 3, 10}));
  EXPECT_EQ(default_moe_spec().make_shared_experts(3, 100), nullptr);
}

TEST(MoeSpec, HasNoMoeLayersByDefault) {
  EXPECT_EQ(read_moe_spec(resolve_text("")).layers(2), (std::vector<const MoeSpec*>{nullptr, nullptr}));
}

TEST(MoeSpec, ABlockThatDoesNotExistIsAnErrorThatSaysWhatIsAllowed) {
  for (const int64_t block : {4, -5}) {
    try {
      default_moe_spec({block}).layers(4);
      FAIL();
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("-4 to 3"), std::string::npos) << error.what();
    }
  }
}

}  // namespace sparsight::moe_spec_test
