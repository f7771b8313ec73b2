// Pieces of an attack: made, saved, read, checked, added up.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <nlohmann/json.hpp>

#include <limits>
#include <set>

#include "sparsight/attacks/attack_saver.h"
#include "sparsight/attacks/run/attack_distances.h"
#include "sparsight/attacks/run/attack_summary.h"
#include "sparsight/io/safetensors.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"
#include "tests/support/random_tensor.h"

namespace sparsight::attack_shard_test {
namespace {

at::Tensor five_logits(const at::Tensor& x) {
  static const at::Tensor first = test::random_tensor({12, 32}, 3).to(torch::kFloat),
                          second = test::random_tensor({5, 12}, 4).to(torch::kFloat);
  return (x.flatten(1) - 0.5).matmul(first.t()).sin().matmul(second.t());
}

// Every sixth has another label than the network's.
AttackedBatch labelled_images(int64_t count) {
  const at::Tensor x = (0.5 + 0.2 * test::random_tensor({count, 2, 4, 4}, 8)).clamp(0, 1).to(torch::kFloat);
  at::Tensor labels = five_logits(x).argmax(1);
  for (int64_t i = 0; i < count; i += 6) labels[i] = (labels[i] + 1) % 5;
  return {{x, {labels}, torch::arange(count, torch::kLong)},
          torch::zeros({count}, torch::kLong),
          std::vector<std::string>(static_cast<size_t>(count), "image"),
          "0123456789abcdef"};
}

AttackPlan make_plan(const std::string& attack, const std::vector<std::string>& settings,
                     const std::string& epsilon = "0.02") {
  AttackRequest request;
  request.attack = attack;
  request.epsilon = epsilon;
  request.overrides = settings;
  return plan_attack(request);
}

AttackShard made_piece(ObservedModel& model, const AttackPlan& plan, const AttackedBatch& images) {
  return attack_shard(model, images, {plan, {plan.threat, 7}, 16});
}

bool warns(const std::vector<std::string>& warnings, const std::string& part) {
  for (const std::string& warning : warnings)
    if (warning.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST(AttackShard, SurvivesTheDisk) {
  const testing::TemporaryFolder folder;
  AttackedFunction inner(five_logits);
  ObservedModel model(inner, false);
  const AttackedBatch images = labelled_images(20);
  const AttackShard piece = made_piece(model, make_plan("apgd", {"attack.steps=5"}), images);
  write_piece(folder.path("0-20"), piece);
  const PieceShape shape{{20, 2, 4, 4}, 5, 1};
  const AttackShard read = read_piece(folder.path("0-20"), shape);
  EXPECT_TRUE(torch::equal(read.pixels, piece.pixels));
  EXPECT_TRUE(torch::equal(read.stage, piece.stage));
  EXPECT_TRUE(torch::equal(read.norm, piece.norm));
  EXPECT_TRUE(torch::equal(read.queries, piece.queries));
  EXPECT_TRUE(torch::equal(read.attacked.logits, piece.attacked.logits));
  EXPECT_EQ(read.checksum, images.checksum);
  EXPECT_EQ(read.stages.at(0).gained, piece.stages.at(0).gained);
  EXPECT_EQ(read.cost.gradients, piece.cost.gradients);
  EXPECT_EQ(read.gradients.images, piece.gradients.images);
  for (const PieceShape& other :
       {PieceShape{{21, 2, 4, 4}, 5, 1}, {{20, 2, 4, 5}, 5, 1}, {{20, 2, 4, 4}, 6, 1}, {{20, 2, 4, 4}, 5, 2}})
    EXPECT_NE(testing::error_text([&] { read_piece(folder.path("0-20"), other); }).find("is damaged ("),
              std::string::npos);
}

// 30 images, of which every sixth has another label: 25 are correct as they are.
TEST(AttackShard, KeepsAndAddsUpDistances) {
  const testing::TemporaryFolder folder;
  AttackedFunction inner(five_logits);
  ObservedModel model(inner, false);
  const AttackedBatch images = labelled_images(30);
  const auto summarised = [&](const std::vector<std::string>& settings) {
    const AttackPlan plan = make_plan("fab", settings, "0.002");
    const AttackShard piece = made_piece(model, plan, images);
    const std::string name = std::to_string(settings.size());
    write_piece(folder.path(name), piece);
    const AttackShard read = read_piece(folder.path(name), {{30, 2, 4, 4}, 5, 1, false, true});
    EXPECT_TRUE(torch::equal(read.distance, piece.distance));
    EXPECT_TRUE(torch::equal(piece.distance.eq(0), ~clean_correct(piece)));
    const at::Tensor fooled = clean_correct(piece) & ~attacked_correct(piece);
    EXPECT_TRUE(torch::equal(fooled, (piece.distance > 0) & (piece.distance <= plan.threat.epsilon)));
    AttackSummary summary(plan);
    summary.add(piece, check_piece(model, images, piece, plan.threat, true, 16));
    return std::pair{summary.json().at("distances"), fooled.sum().item<int64_t>()};
  };
  const auto [within, fooled] = summarised({"attack.steps=10"});
  EXPECT_EQ(within["of"], 25);
  EXPECT_EQ(within["found"], fooled);
  EXPECT_EQ(within["beyond_epsilon"], false);
  const Json all = summarised({"attack.steps=10", "attack.distances=true"}).first;
  EXPECT_GT(all["found"], fooled);
  EXPECT_EQ(all["beyond_epsilon"], true);
  EXPECT_GT(all["quantiles"]["median"].get<double>(), all["quantiles"]["p5"].get<double>());
  const AttackPlan other = make_plan("fgsm", {});
  AttackSummary summary(other);
  const AttackShard piece = made_piece(model, other, images);
  EXPECT_FALSE(piece.distance.defined());
  write_piece(folder.path("other"), piece);
  EXPECT_THROW(read_piece(folder.path("other"), {{30, 2, 4, 4}, 5, 1, false, true}), Error);
  summary.add(piece, check_piece(model, images, piece, other.threat, true, 16));
  EXPECT_FALSE(summary.json().contains("distances"));
}

// By the nearest rank: of four, 5 % and 25 % are the first, the median the second, 75 % the third, 95 % the fourth.
TEST(AttackShard, QuantilesOfDistancesCountImagesWithoutOne) {
  const double none = std::numeric_limits<double>::infinity();
  const Json four = distances_json({.4, .1, .3, .2}, true);
  EXPECT_EQ(four["quantiles"], Json({{"p5", .1}, {"p25", .1}, {"median", .2}, {"p75", .3}, {"p95", .4}}));
  EXPECT_EQ(four["found"], 4);
  const Json few = distances_json({none, .1, none}, false);
  EXPECT_EQ(few["quantiles"]["p25"], .1);
  EXPECT_TRUE(few["quantiles"]["median"].is_null());
  EXPECT_EQ(few["found"], 1);
  EXPECT_EQ(few["of"], 3);
  EXPECT_TRUE(distances_json({}, false)["quantiles"]["median"].is_null());
}

// Values that no attack writes are named with the folder that has them.
TEST(AttackShard, ForgedValuesAreRefused) {
  const testing::TemporaryFolder folder;
  AttackedFunction inner(five_logits);
  ObservedModel model(inner, false);
  const AttackShard made = made_piece(model, make_plan("fgsm", {}), labelled_images(20));
  const auto refusal = [&](const char* name, const std::function<void(AttackShard&)>& forge) {
    AttackShard forged = made;
    for (at::Tensor* tensor : {&forged.norm, &forged.pixels, &forged.stage, &forged.queries}) *tensor = tensor->clone();
    forged.distance = torch::zeros({20}, torch::kDouble);
    forge(forged);
    write_piece(folder.path(name), forged);
    return testing::error_text([&] { read_piece(folder.path(name), {{20, 2, 4, 4}, 5, 1, false, true}); });
  };
  const auto says = [&](const char* name, const std::string& why) {
    return "the saved piece " + folder.path(name) + " of the attack is damaged (" + why +
           "); remove that folder and run the same command again";
  };
  EXPECT_EQ(refusal("fine", [](AttackShard&) {}), "");
  EXPECT_EQ(refusal("norm", [](AttackShard& piece) { piece.norm[3] = std::nan(""); }),
            says("norm", "tensor norm has values that are no distances"));
  EXPECT_EQ(refusal("below", [](AttackShard& piece) { piece.norm[3] = -1; }),
            says("below", "tensor norm has values that are no distances"));
  EXPECT_EQ(refusal("distance", [](AttackShard& piece) { piece.distance[3] = std::nan(""); }),
            says("distance", "tensor distance has values that are no distances"));
  EXPECT_EQ(refusal("pixels", [](AttackShard& piece) { piece.pixels.view(-1)[3] = INFINITY; }),
            says("pixels", "tensor pixels has values that are not finite"));
  EXPECT_EQ(refusal("stage", [](AttackShard& piece) { piece.stage[0] = 1; }),
            says("stage", "tensor stage has numbers of no stage"));
  EXPECT_EQ(refusal("queries", [](AttackShard& piece) { piece.queries[0] = -5; }),
            says("queries", "tensor queries has numbers below 0"));
}

TEST(AttackShard, ChecksRejectWhatTheThreatDoesNotAllow) {
  AttackedFunction inner(five_logits);
  ObservedModel model(inner, false);
  const AttackedBatch images = labelled_images(12);
  const AttackPlan plan = make_plan("fgsm", {});
  const AttackShard piece = made_piece(model, plan, images);
  const auto complaint = [&](const AttackShard& changed, const AttackedBatch& of) {
    return testing::error_text([&] { check_piece(model, of, changed, plan.threat, true, 16); });
  };
  EXPECT_EQ(complaint(piece, images), "");
  AttackShard far = piece, broken = piece;
  far.pixels = piece.pixels.clone();
  far.pixels.view(-1)[3] = images.batch.pixels.view(-1)[3] + .0201;
  EXPECT_NE(complaint(far, images).find("beyond epsilon 0.02"), std::string::npos);
  broken.pixels = piece.pixels.clone();
  broken.pixels.view(-1)[3] = std::nan("");
  EXPECT_NE(complaint(broken, images).find("not finite"), std::string::npos);
  AttackedBatch other = images;
  other.checksum = "fedcba9876543210";
  EXPECT_NE(complaint(piece, other).find("are not those that were attacked"), std::string::npos);
  const PieceCheck check = check_piece(model, images, piece, plan.threat, true, 16);
  EXPECT_TRUE(torch::equal(check.misclassified, ~attacked_correct(piece)));
  EXPECT_NEAR(check.largest_norm, .02, 1e-8);
}

TEST(AttackShard, A33_StagesOfACascadeAddUp) {
  AttackedFunction inner(five_logits);
  ObservedModel model(inner, false);
  const AttackedBatch images = labelled_images(40);
  const AttackPlan plan = make_plan("autoattack", {"attack.steps=8", "attack.queries=30", "attack.targets=3"});
  AttackShard piece = made_piece(model, plan, images);
  AttackSummary summary(plan);
  summary.add(piece, check_piece(model, images, piece, plan.threat, true, 16));
  const Json json = summary.json();
  EXPECT_EQ(json["clean_accuracy"]["count"], 33);
  int64_t robust = 33, queries = 40;
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(json["stages"][i]["robust_before"], robust);
    robust -= json["stages"][i]["gained"].get<int64_t>();
    queries += json["stages"][i]["queries"].get<int64_t>();
    EXPECT_EQ(piece.stage.eq(static_cast<int64_t>(i)).sum().item<int64_t>(), json["stages"][i]["gained"]);
  }
  EXPECT_EQ(json["robust_accuracy"]["count"], robust);
  EXPECT_EQ(json["accuracy_after"]["count"], robust);
  EXPECT_EQ(json["success_rate"]["count"], 33 - robust);
  EXPECT_EQ(json["queries"], queries);
  EXPECT_EQ(piece.queries.sum().item<int64_t>(), queries);
  EXPECT_EQ(json["saved_images"]["misclassified"], 33 - robust);
}

// Killed when the third attack of the cascade begins: the first two are not run again.
TEST(AttackShard, AKilledCascadeRepeatsNoAttack) {
  const testing::TemporaryFolder folder;
  AttackedFunction inner(five_logits);
  const AttackedBatch images = labelled_images(40);
  const AttackPlan plan = make_plan("autoattack", {"attack.steps=8", "attack.queries=30", "attack.targets=3"});
  ObservedModel whole(inner, false), killed(inner, false), resumed(inner, false);
  const AttackShard expected = made_piece(whole, plan, images);
  PieceAttack how{plan, {plan.threat, 7}, 16};
  AttackSaver saver(folder.path("state"), killed, 0);
  how.context.saver = &saver;
  how.progress = [](size_t stage, int64_t) {
    if (stage == 2) fail("killed");
  };
  EXPECT_EQ(testing::error_text([&] { attack_shard(killed, images, how); }), "killed");
  AttackSaver again(folder.path("state"), resumed, 0);
  how.context.saver = &again;
  std::set<size_t> stages;
  how.progress = [&](size_t stage, int64_t) { stages.insert(stage); };
  const int64_t passes = inner.cost().queries;
  const AttackShard found = attack_shard(resumed, images, how);
  EXPECT_EQ(stages, (std::set<size_t>{2, 3}));
  // The passes that are done again: the first one, of 40 images.
  const int64_t of_two = expected.stages[0].cost.queries + expected.stages[1].cost.queries;
  EXPECT_EQ(inner.cost().queries - passes, expected.cost.queries - of_two + 2 * 40);  // and both verdicts
  EXPECT_TRUE(torch::equal(found.pixels, expected.pixels));
  EXPECT_TRUE(torch::equal(found.stage, expected.stage));
  EXPECT_TRUE(torch::equal(found.queries, expected.queries));
  EXPECT_EQ(found.cost.queries, expected.cost.queries);
  EXPECT_EQ(found.cost.gradients, expected.cost.gradients);
  EXPECT_EQ(found.gradients.images, expected.gradients.images);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(found.stages[i].robust_before, expected.stages[i].robust_before);
    EXPECT_EQ(found.stages[i].gained, expected.stages[i].gained);
    EXPECT_EQ(found.stages[i].cost.queries, expected.stages[i].cost.queries);
    EXPECT_EQ(found.stages[i].cost.gradients, expected.stages[i].cost.gradients);
    EXPECT_GT(found.stages[i].seconds, 0);
  }
}

// A single attack of several batches, killed in the second.
TEST(AttackShard, AKilledAttackGoesOnWithinABatch) {
  const testing::TemporaryFolder folder;
  const AttackedBatch images = labelled_images(40);
  const AttackPlan plan = make_plan("apgd", {"attack.steps=20"});
  AttackedFunction inner(five_logits);
  ObservedModel whole(inner, false);
  const AttackShard expected = made_piece(whole, plan, images);
  // Passes: one of each batch as it is; clean, start, 20 steps and the verdict of the first batch; 12 of the second.
  int64_t left = 3 + 23 + 12;
  AttackedFunction mortal([&](const at::Tensor& x) {
    if (left-- == 0) fail("killed");
    return five_logits(x);
  });
  ObservedModel killed(mortal, false), resumed(inner, false);
  PieceAttack how{plan, {plan.threat, 7}, 16};
  AttackSaver saver(folder.path("state"), killed, 0);
  how.context.saver = &saver;
  EXPECT_EQ(testing::error_text([&] { attack_shard(killed, images, how); }), "killed");
  AttackSaver again(folder.path("state"), resumed, 0);
  how.context.saver = &again;
  std::vector<int64_t> robust;
  how.progress = [&](size_t, int64_t count) { robust.push_back(count); };
  const AttackShard found = attack_shard(resumed, images, how);
  EXPECT_EQ(robust.size(), 2u);  // of the batches of 16 and of 8 that are left
  EXPECT_TRUE(torch::equal(found.pixels, expected.pixels));
  EXPECT_TRUE(torch::equal(found.stage, expected.stage));
  EXPECT_TRUE(torch::equal(found.queries, expected.queries));
  EXPECT_EQ(found.stages[0].cost.queries, expected.stages[0].cost.queries);
  EXPECT_EQ(found.cost.gradients, expected.cost.gradients);
}

// Batches of 16 end at other images than those of 32. Killed when two of three calls were done, of 32 of 40 images; the
// two calls of the other size would seem done too, and the 8 images that were not attacked robust.
TEST(AttackShard, AKilledAttackDoesNotGoOnInOtherBatches) {
  AttackedFunction inner(five_logits);
  const AttackedBatch images = labelled_images(40);
  for (const AttackPlan& plan :
       {make_plan("apgd", {"attack.steps=3"}, "0.0001"),
        make_plan("autoattack", {"attack.steps=3", "attack.queries=3", "attack.targets=1"}, "0.0001")}) {
    const testing::TemporaryFolder folder;
    const auto attacked = [&](int64_t batch_size, int64_t calls, const std::function<void(Json&)>& change = {}) {
      if (change) {
        TensorFile file = read_safetensors(folder.path("state"));
        Json levels = Json::parse(file.metadata["levels"]);
        change(levels);
        file.metadata["levels"] = levels.dump();
        write_safetensors(folder.path("state"), file);
      }
      ObservedModel model(inner, true);
      AttackSaver saver(folder.path("state"), model, 0);
      PieceAttack how{plan, {plan.threat, 7, {}, &saver}, batch_size, true};
      how.progress = [&](size_t, int64_t) {
        if (calls-- == 0) fail("killed");
      };
      return testing::error_text([&] { attack_shard(model, images, how); });
    };
    EXPECT_EQ(attacked(16, 2), "killed");
    const std::string other = attacked(32, 100);
    EXPECT_NE(other.find("is of another --batch"), std::string::npos) << other;
    const std::string more = attacked(16, 100, [](Json& levels) { levels.back()["done"] = 4; });
    EXPECT_NE(more.find("is damaged (4 iterations of a loop of 3)"), std::string::npos) << more;
    const std::string unused = attacked(16, 100, [](Json& levels) {
      levels.back()["done"] = 3;
      levels.push_back(levels.back());
      levels.back()["strides"] = Json::array();
    });
    // In a cascade the next attack comes to the level first.
    EXPECT_NE(unused.find(plan.is_cascade() ? "is of another" : "is damaged (the attack ended without what it holds)"),
              std::string::npos)
        << unused;
    EXPECT_EQ(attacked(16, 100, [](Json& levels) { levels.erase(levels.size() - 1), levels.back()["done"] = 2; }), "");
  }
}

// The paper's preset moves all images, and may make a wrong one right.
TEST(AttackShard, A40_ASingleAttackMovesAllImages) {
  AttackedFunction inner(five_logits);
  ObservedModel model(inner, false);
  const AttackedBatch images = labelled_images(36);
  const AttackPlan plan = make_plan("pgd", {"attack.preset=paper", "attack.steps=4"}, "0.1");
  const AttackShard piece = made_piece(model, plan, images);
  EXPECT_TRUE((piece.norm > 0.09).all().item<bool>());
  AttackSummary summary(plan);
  summary.add(piece, check_piece(model, images, piece, plan.threat, false, 16));
  const Json json = summary.json();
  EXPECT_EQ(json["clean_accuracy"]["count"], 30);
  EXPECT_GE(json["accuracy_after"]["count"], json["robust_accuracy"]["count"]);
  EXPECT_EQ(json["prediction_change"]["of"], 36);
  EXPECT_EQ(json["success_rate"]["of"], 30);
  EXPECT_TRUE(summary.warnings().empty());
}

TEST(AttackShard, MaskedGradientsAreFlagged) {
  AttackedFunction masked(
      [](const at::Tensor& x) { return x.flatten(1).narrow(1, 0, 5) * 0 + five_logits(x).detach(); });
  ObservedModel model(masked, false);
  const AttackedBatch images = labelled_images(30);
  const auto collect_warnings = [&](const AttackPlan& plan) {
    const AttackShard piece = made_piece(model, plan, images);
    AttackSummary summary(plan);
    summary.add(piece, check_piece(model, images, piece, plan.threat, true, 16));
    return summary.warnings();
  };
  const auto pgd = collect_warnings(make_plan("pgd", {"attack.steps=3"}));
  EXPECT_TRUE(warns(pgd, "gradients were 0"));
  EXPECT_TRUE(warns(pgd, "the loss did not rise"));
  const auto cascade =
      collect_warnings(make_plan("autoattack", {"attack.steps=3", "attack.queries=200", "attack.targets=1"}, "0.1"));
  EXPECT_TRUE(warns(cascade, "square fooled") || warns(cascade, "gradients were 0"));
  EXPECT_TRUE(warns(cascade, "gradients were 0"));
}

// 8 of 10: Wilson's interval of 95 % is 0.4902 to 0.9433.
TEST(AttackShard, A40_SharesHaveWilsonIntervals) {
  const Json share = share_json(8, 10);
  EXPECT_DOUBLE_EQ(share["value"], 0.8);
  EXPECT_NEAR(share["interval"][0], 0.4902, 5e-5);
  EXPECT_NEAR(share["interval"][1], 0.9433, 5e-5);
  EXPECT_TRUE(share_json(0, 0)["value"].is_null());
}

}  // namespace sparsight::attack_shard_test
