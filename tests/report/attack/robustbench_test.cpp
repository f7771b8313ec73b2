// An AutoAttack as an entry of RobustBench: the fields that its files in model_info/ have, and what is refused.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/report/attack/robustbench.h"
#include "tests/support/errors.h"

namespace sparsight::robustbench_test {
namespace {

Json autoattack() {
  return {{"model", {{"name", "resnet"}}},
          {"data", {{"name", "cifar10"}, {"split", "test"}, {"of", 10000}}},
          {"threat", {{"norm", "linf"}, {"epsilon", 8.0 / 255}, {"given", "8/255 of pixels in 0..1"}}},
          {"attack", {{"name", "autoattack"}, {"version", "standard"}}},
          {"images", 10000},
          {"clean_accuracy", {{"count", 8334}, {"of", 10000}}},
          {"robust_accuracy", {{"count", 4321}, {"of", 10000}}},
          {"notes", Json::array()},
          {"warnings", Json::array()}};
}

std::string refusal(const std::function<void(Json&)>& change, bool any_epsilon = false,
                    const std::vector<std::string>& fields = {}) {
  Json result = autoattack();
  change(result);
  return testing::error_text([&] { robustbench_entry(result, parse_robustbench_fields(fields), any_epsilon); });
}

std::string usage_error(const std::vector<std::string>& fields) {
  return testing::error_text<UsageError>([&] { parse_robustbench_fields(fields); });
}

}  // namespace

// The entry of Wong et al. 2020 on the public leaderboard, field by field and in its order; `unreliable` is in newer
// ones.
TEST(RobustBench, AnEntryHasTheFieldsOfThePublicFiles) {
  const RobustBenchEntry entry =
      robustbench_entry(autoattack(),
                        parse_robustbench_fields({"link=https://arxiv.org/abs/2001.03994",
                                                  "name=Fast is better than free: Revisiting adversarial training",
                                                  "authors=Eric Wong, Leslie Rice, J. Zico Kolter", "venue=ICLR 2020",
                                                  "architecture=ResNet-18", "reported=46.06"}),
                        false);
  EXPECT_EQ(entry.info.dump(),
            R"({"link":"https://arxiv.org/abs/2001.03994",)"
            R"("name":"Fast is better than free: Revisiting adversarial training",)"
            R"("authors":"Eric Wong, Leslie Rice, J. Zico Kolter","additional_data":false,"number_forward_passes":1,)"
            R"("dataset":"cifar10","venue":"ICLR 2020","architecture":"ResNet-18","eps":"8/255","clean_acc":"83.34",)"
            R"("reported":"46.06","autoattack_acc":"43.21","unreliable":false})");
  EXPECT_EQ(entry.folder, "model_info/cifar10/Linf");
  EXPECT_TRUE(entry.empty.empty());
}

TEST(RobustBench, WhatIsNotGivenIsNamed) {
  Json result = autoattack();
  result["threat"] = {{"norm", "l2"}, {"epsilon", .5}, {"given", "1 of pixels in -1..1"}};
  result["warnings"] = {"gradients were 0"};
  const RobustBenchEntry entry =
      robustbench_entry(result, parse_robustbench_fields({"additional_data=true", "footnote=x=y", "name=5"}), false);
  EXPECT_EQ(entry.info["eps"], "0.5");
  EXPECT_EQ(entry.info["name"], "5");
  EXPECT_EQ(entry.info["architecture"], "resnet");
  EXPECT_EQ(entry.info["reported"], "43.21");
  EXPECT_EQ(entry.info["additional_data"], true);
  EXPECT_EQ(entry.info["footnote"], "x=y");
  EXPECT_EQ(entry.info["unreliable"], true);
  EXPECT_EQ(entry.folder, "model_info/cifar10/L2");
  EXPECT_EQ(entry.empty, (std::vector<std::string>{"link", "authors", "venue"}));
}

TEST(RobustBench, OtherAttacksAreRefused) {
  EXPECT_EQ(refusal([](Json&) {}), "");
  EXPECT_EQ(refusal([](Json& r) {
              r["attack"] = {{"name", "pgd"}, {"version", ""}};
            }),
            "RobustBench lists accuracies under the standard AutoAttack, this attack is pgd; run sparsight attack "
            "without --attack");
  EXPECT_NE(refusal([](Json& r) { r["attack"]["version"] = "plus"; }).find("this attack is autoattack plus"),
            std::string::npos);
  EXPECT_EQ(refusal([](Json& r) { r["notes"] = {"not the standard cascade of AutoAttack: steps = 4"}; }),
            "RobustBench lists accuracies under the standard AutoAttack, but of this one: not the standard cascade of "
            "AutoAttack: steps = 4");
  EXPECT_NE(refusal([](Json& r) { r = Json::object(); }).find("this attack is of another program"), std::string::npos);
}

TEST(RobustBench, PartsOfATestSetAreRefused) {
  EXPECT_EQ(refusal([](Json& r) { r["images"] = 200; }),
            "RobustBench lists accuracies on a whole split, this attack is of 200 of 10,000 images; attack without "
            "--images");
  EXPECT_EQ(refusal([](Json& r) { r["data"]["split"] = "train"; }),
            "RobustBench lists accuracies on the test split, this attack is of the train split");
  EXPECT_EQ(refusal([](Json& r) { r["images"] = r["data"]["of"] = 64; }),
            "RobustBench lists accuracies on the 10,000 test images of cifar10, this attack is of 64");
  EXPECT_EQ(refusal([](Json& r) { r["data"]["classes"] = Json::array({"cat"}); }),
            "RobustBench lists accuracies on a whole split, this attack is of some classes; attack without "
            "--only-classes");
  // Other datasets have test sets of any size; ImageNet has no labels of its test split.
  EXPECT_EQ(refusal([](Json& r) { r["images"] = r["data"]["of"] = 64, r["data"]["name"] = "glyphs"; }), "");
  const auto imagenet = [](Json& r) {
    r["images"] = r["data"]["of"] = 5000, r["data"]["split"] = "val", r["data"]["name"] = "folder";
    r["threat"]["epsilon"] = 4.0 / 255;
  };
  EXPECT_EQ(refusal(imagenet, false, {"dataset=imagenet"}), "");
  EXPECT_NE(refusal(imagenet).find("validation split"), std::string::npos);
}

TEST(RobustBench, OtherEpsilonsAreRefusedUnlessTheyAreWanted) {
  const auto set_epsilon = [](const char* norm, double epsilon, const char* given) {
    return [=](Json& r) { r["threat"] = {{"norm", norm}, {"epsilon", epsilon}, {"given", given}}; };
  };
  const auto small = set_epsilon("linf", 2.0 / 255, "2/255 of pixels in 0..1");
  EXPECT_EQ(refusal(small),
            "RobustBench lists linf at epsilon 8/255, this attack is at 2/255 of pixels in 0..1; give --any-eps to "
            "write it all the same");
  EXPECT_EQ(refusal(small, true), "");
  EXPECT_NE(refusal(set_epsilon("l2", 8.0 / 255, "8/255 of pixels in 0..1")).find("lists l2 at epsilon 0.5"),
            std::string::npos);
  EXPECT_EQ(refusal(set_epsilon("linf", 0.0313725, "0.0313725 of pixels in 0..1")), "");
  EXPECT_NE(refusal(set_epsilon("linf", 0.0314, "0.0314 of pixels in 0..1")), "");
  Json result = autoattack();
  small(result);
  EXPECT_EQ(robustbench_entry(result, {}, true).info["eps"], "2/255");
}

TEST(RobustBench, DamagedResultsAreNamed) {
  EXPECT_NE(refusal([](Json& r) { r.erase("robust_accuracy"); }).find("is damaged: it has no count"),
            std::string::npos);
  EXPECT_NE(refusal([](Json& r) { r["robust_accuracy"]["of"] = 0; }).find("is damaged"), std::string::npos);
  EXPECT_NE(refusal([](Json& r) { r["clean_accuracy"]["count"] = 1e300; }).find("is damaged"), std::string::npos);
  EXPECT_NE(refusal([](Json& r) { r["threat"].erase("epsilon"); }).find("it has no epsilon"), std::string::npos);
  EXPECT_NE(refusal([](Json& r) { r.erase("images"); }).find("it has no images"), std::string::npos);
}

TEST(RobustBench, FieldsAreChecked) {
  EXPECT_NE(usage_error({"venu=x"}).find("did you mean \"venue\"?"), std::string::npos);
  EXPECT_NE(usage_error({"venue"}).find("--field takes KEY=VALUE"), std::string::npos);
  EXPECT_NE(usage_error({"=x"}).find("--field takes KEY=VALUE"), std::string::npos);
  EXPECT_NE(usage_error({"reported=146"}), "");
  EXPECT_NE(usage_error({"reported=high"}), "");
  EXPECT_NE(usage_error({"additional_data=maybe"}), "");
  EXPECT_NE(usage_error({"number_forward_passes=0"}), "");
  EXPECT_EQ(usage_error({"number_forward_passes=10", "name="}), "");
}

}  // namespace sparsight::robustbench_test
