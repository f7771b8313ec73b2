// An attack's result as text and as a page.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/report/attack/attack_csv.h"
#include "sparsight/report/attack/attack_page.h"
#include "sparsight/report/attack/attack_routing_text.h"
#include "sparsight/report/attack/attack_text.h"

namespace sparsight::attack_text_test {
namespace {

Json some_share(int64_t count, int64_t of, double value) {
  return {{"count", count}, {"of", of}, {"value", value}, {"interval", {0.25, 0.75}}};
}

Json some_result() {
  return {
      {"model", {{"checkpoint", "runs/a<b>/best.safetensors"}, {"packed", nullptr}, {"path", "runs/a<b>"}}},
      {"attack", {{"name", "autoattack"}, {"version", "standard"}, {"noise", true}}},
      {"threat", {{"norm", "linf"}, {"epsilon", 4.0 / 255}, {"range", "0..1"}, {"given", "4/255 of pixels in 0..1"}}},
      {"pixels_clipped", false},
      {"clean_accuracy", some_share(3, 4, 0.75)},
      {"robust_accuracy", some_share(1, 4, 0.25)},
      {"accuracy_after", some_share(2, 4, 0.5)},
      {"stages",
       {{{"name", "apgd-ce"},
         {"attack", "apgd"},
         {"settings", {{"steps", 100}, {"router_losses", Json::array()}}},
         {"gained", 2},
         {"robust_after", some_share(1, 4, 0.25)},
         {"queries", 1234},
         {"gradients", 5},
         {"seconds", 3.0}}}},
      {"moved_images", 3},
      {"routing",
       {{{"layer", "blocks.1.mlp"},
         {"experts", 2},
         {"per_token", 2},
         {"images", 4},
         {"change", 0.0},
         {"chance", 0.0},
         {"of_chance", nullptr},
         {"load", {40, 20}},
         {"attacked_load", {20, 40}},
         {"entropy", 0.9183},
         {"attacked_entropy", 0.91829}}}},
      {"warnings", {"look <here>"}},
      {"notes", {"steps = 100"}}};
}

}  // namespace

TEST(AttackText, HasARowForEachAttack) {
  const Rows rows = attack_rows(some_result());
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1][1], "75.00 %");
  EXPECT_EQ(rows[2], (std::vector<std::string>{"apgd-ce", "25.00 %", "25.00 to 75.00", "2", "1,234", "5", "3.0 s"}));
}

TEST(AttackText, A60_SaysUnitsClippingNoiseAndSettings) {
  const std::string text = attack_text(some_result());
  for (const char* part : {"autoattack (standard), linf, epsilon 4/255 of pixels in 0..1, which is 0.0156863 of pixels",
                           "not clipped", "with router noise", "  apgd-ce: apgd, steps 100, router_losses none\n",
                           "accuracy after the attack 50.00 %", "warning: look <here>\n", "note: steps = 100\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

// One of 4 images has the target for its label.
TEST(AttackText, SaysWhatATargetedAttackIsAt) {
  Json result = some_result();
  result["success_rate"] = some_share(2, 3, 0.6667);
  result["data"] = {{"name", "glyphs"}, {"split", "test"}, {"of", 9}, {"classes", {"bolt", "star"}}};
  result["target"] = {
      {"given", "bolt"}, {"class", 2}, {"name", "bolt"}, {"left_out", 1}, {"predicted_clean", some_share(0, 3, 0)}};
  const Rows rows = attack_rows(result);
  EXPECT_EQ(rows[0][3], "at target");
  EXPECT_EQ(rows[1][3], "0.00 %");
  EXPECT_EQ(rows[2][3], "66.67 %");
  EXPECT_EQ(rows[2][4], "2");  // gained
  const std::string text = attack_text(result);
  for (const char* part : {"targeted at class 2 (bolt)\n", "success is a prediction of the target, class 2 (bolt)\n",
                           "of 9 images of the test split of glyphs, only of the classes bolt, star, fingerprint",
                           "left out of the success rate: 1 images whose label is the target\n",
                           "fooled images are predicted as their target", "at target"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  EXPECT_NE(attack_page(result, {}).find("targeted at class 2 (bolt)"), std::string::npos);
  for (const auto& [given, says] :
       {std::pair{"random", "a random wrong class"}, {"least_likely", "the least likely"}}) {
    result["target"]["given"] = given;
    EXPECT_EQ(attack_target_text(result).find(says), 0u);
  }
  EXPECT_EQ(attack_target_text(some_result()), "");
}

TEST(AttackText, SaysTheCapacityInUseAndWhyImagesAreAttackedTogether) {
  Json result = some_result();
  EXPECT_NE(attack_text(result).find("experts' capacity: no limit\n"), std::string::npos);
  EXPECT_EQ(attack_text(result).find("attacked together"), std::string::npos);
  result["images_share_capacity"] = true;
  result["model"]["capacity"] = {{"factor", 1.05},        {"eval_factor", -1.0},    {"effective_factor", 1.05},
                                 {"multiple", 4},         {"priority", "max_gate"}, {"group", 2},
                                 {"group_unit", "images"}};
  result["drop_rate"] = {{"clean", 0.1}, {"attacked", 0.2}};
  const std::string text = attack_text(result);
  EXPECT_NE(text.find("experts' capacity: factor 1.05, multiple 4, priority max_gate, groups of 2 images, dropped "
                      "10.00 % clean, 20.00 % attacked\n"
                      "images attacked together: they share the experts' capacity\n"),
            std::string::npos)
      << text;
  result["images_share_capacity"] = false;
  result["images_choose_together"] = result["images_share_objective"] = true;
  EXPECT_NE(attack_text(result).find("images attacked together: routers choose experts among all images of a batch; "
                                     "the objective is one number of a batch\n"),
            std::string::npos);
}

TEST(AttackText, A38_RoutingStandsBesideChance) {
  const Rows rows = attack_routing_rows(some_result());
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1],
            (std::vector<std::string>{"blocks.1.mlp", "0.00 %", "-", "0.00 %", "-", "█▅", "▅█", "0.9183", "0.9183"}));
  Json dropping = some_result();
  dropping["routing"][0]["attacked_dropped"] = 0.25;
  EXPECT_EQ(attack_routing_rows(dropping)[1].back(), "25.00 %");
  EXPECT_NE(attack_text(some_result()).find("over 4 images, of which 3 moved;"), std::string::npos);
  EXPECT_NE(attack_page(some_result(), {}).find("<td>█▅</td>"), std::string::npos);
}

TEST(AttackText, SaysHowSmallThePerturbationsAre) {
  Json result = some_result();
  EXPECT_EQ(attack_text(result).find("smallest perturbation"), std::string::npos);
  result["distances"] = {
      {"of", 1200},
      {"found", 700},
      {"beyond_epsilon", false},
      {"quantiles", {{"p5", .001}, {"p25", .0025}, {"median", 1.0 / 255}, {"p75", nullptr}, {"p95", nullptr}}}};
  EXPECT_NE(attack_text(result).find("smallest perturbation that fools, in linf: 5 %: 0.001, 25 %: 0.0025, median: "
                                     "0.00392157, 75 %: beyond epsilon, 95 %: beyond epsilon; found for 700 of 1,200 "
                                     "images that are correct as they are\n"),
            std::string::npos)
      << attack_text(result);
  result["distances"]["beyond_epsilon"] = true;
  EXPECT_NE(attack_text(result).find("75 %: none found"), std::string::npos);
  result["distances"] = {{"quantiles", 3}};
  EXPECT_NE(attack_text(result).find("5 %: beyond epsilon"), std::string::npos);
}

TEST(AttackText, CsvQuotesNamesAndLeavesUnknownNumbersEmpty) {
  Json layers = some_result()["routing"];
  layers[0]["layer"] = "a,\"b\"";
  const std::string csv = attack_routing_csv(layers);
  EXPECT_EQ(csv.substr(0, csv.find("change_chosen")), "layer,experts,per_token,images,change,change_moved,");
  EXPECT_NE(csv.find("\n\"a,\"\"b\"\"\",2,2,4,0,,,,0,,0.9183,0.91829,,,,,,,,,40 20,20 40\n"), std::string::npos) << csv;
}

// Results of other versions may lack anything.
TEST(AttackText, TakesMissingFields) {
  EXPECT_NE(attack_text(Json::object()).find("robust accuracy - (95 % CI: -)"), std::string::npos);
}

TEST(AttackText, ThePageEscapesNames) {
  AttackExample example;
  example.id = "<script>";
  example.label = "cat&dog";
  example.clean = example.attacked = example.change = "png";
  const std::string page = attack_page(some_result(), {example});
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
  EXPECT_NE(page.find("cat&amp;dog is taken for"), std::string::npos);
  EXPECT_NE(page.find("look &lt;here&gt;"), std::string::npos);
  EXPECT_EQ(page.find("experts, clean"), std::string::npos);
}

}  // namespace sparsight::attack_text_test
