// Pieces of an attack: made, saved, read, checked, added up.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <nlohmann/json.hpp>

#include "sparsight/runs/attack_summary.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"
#include "tests/support/random_tensor.h"

namespace sparsight::attack_piece_test {
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

AttackPlan plan_of(const std::string& attack, const std::vector<std::string>& settings,
                   const std::string& epsilon = "0.02") {
  AttackRequest request;
  request.attack = attack;
  request.epsilon = epsilon;
  request.overrides = settings;
  return plan_attack(request);
}

AttackPiece made_piece(ObservedModel& model, const AttackPlan& plan, const AttackedBatch& images) {
  return attack_piece(model, images, {plan, {plan.threat, 7}, 16});
}

bool warns(const std::vector<std::string>& warnings, const std::string& part) {
  for (const std::string& warning : warnings)
    if (warning.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST(AttackPiece, SurvivesTheDisk) {
  const testing::TemporaryFolder folder;
  AttackedFunction inner(five_logits);
  ObservedModel model(inner, false);
  const AttackedBatch images = labelled_images(20);
  const AttackPiece piece = made_piece(model, plan_of("apgd", {"attack.steps=5"}), images);
  write_piece(folder.path("0-20"), piece);
  const AttackPiece read = read_piece(folder.path("0-20"), 20);
  EXPECT_TRUE(torch::equal(read.pixels, piece.pixels));
  EXPECT_TRUE(torch::equal(read.stage, piece.stage));
  EXPECT_TRUE(torch::equal(read.norm, piece.norm));
  EXPECT_TRUE(torch::equal(read.queries, piece.queries));
  EXPECT_TRUE(torch::equal(read.attacked.logits, piece.attacked.logits));
  EXPECT_EQ(read.checksum, images.checksum);
  EXPECT_EQ(read.stages.at(0).gained, piece.stages.at(0).gained);
  EXPECT_EQ(read.cost.gradients, piece.cost.gradients);
  EXPECT_EQ(read.gradients.images, piece.gradients.images);
  EXPECT_NE(testing::message_of([&] { read_piece(folder.path("0-20"), 21); }).find("is damaged ("), std::string::npos);
}

TEST(AttackPiece, ChecksRejectWhatTheThreatDoesNotAllow) {
  AttackedFunction inner(five_logits);
  ObservedModel model(inner, false);
  const AttackedBatch images = labelled_images(12);
  const AttackPlan plan = plan_of("fgsm", {});
  const AttackPiece piece = made_piece(model, plan, images);
  const auto complaint = [&](const AttackPiece& changed, const AttackedBatch& of) {
    return testing::message_of([&] { check_piece(model, of, changed, plan.threat, true, 16); });
  };
  EXPECT_EQ(complaint(piece, images), "");
  AttackPiece far = piece, broken = piece;
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

TEST(AttackPiece, A33_StagesOfACascadeAddUp) {
  AttackedFunction inner(five_logits);
  ObservedModel model(inner, false);
  const AttackedBatch images = labelled_images(40);
  const AttackPlan plan = plan_of("autoattack", {"attack.steps=8", "attack.queries=30", "attack.targets=3"});
  AttackPiece piece = made_piece(model, plan, images);
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

// The paper's preset moves all images, and may make a wrong one right.
TEST(AttackPiece, A40_ASingleAttackMovesAllImages) {
  AttackedFunction inner(five_logits);
  ObservedModel model(inner, false);
  const AttackedBatch images = labelled_images(36);
  const AttackPlan plan = plan_of("pgd", {"attack.preset=paper", "attack.steps=4"}, "0.1");
  const AttackPiece piece = made_piece(model, plan, images);
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

TEST(AttackPiece, MaskedGradientsAreFlagged) {
  AttackedFunction masked(
      [](const at::Tensor& x) { return x.flatten(1).narrow(1, 0, 5) * 0 + five_logits(x).detach(); });
  ObservedModel model(masked, false);
  const AttackedBatch images = labelled_images(30);
  const auto warnings_of = [&](const AttackPlan& plan) {
    const AttackPiece piece = made_piece(model, plan, images);
    AttackSummary summary(plan);
    summary.add(piece, check_piece(model, images, piece, plan.threat, true, 16));
    return summary.warnings();
  };
  const auto pgd = warnings_of(plan_of("pgd", {"attack.steps=3"}));
  EXPECT_TRUE(warns(pgd, "gradients were 0"));
  EXPECT_TRUE(warns(pgd, "the loss did not rise"));
  const auto cascade =
      warnings_of(plan_of("autoattack", {"attack.steps=3", "attack.queries=200", "attack.targets=1"}, "0.1"));
  EXPECT_TRUE(warns(cascade, "square fooled") || warns(cascade, "gradients were 0"));
  EXPECT_TRUE(warns(cascade, "gradients were 0"));
}

// 8 of 10: Wilson's interval of 95 % is 0.4902 to 0.9433.
TEST(AttackPiece, A40_SharesHaveWilsonIntervals) {
  const Json share = share_json(8, 10);
  EXPECT_DOUBLE_EQ(share["value"], 0.8);
  EXPECT_NEAR(share["interval"][0], 0.4902, 5e-5);
  EXPECT_NEAR(share["interval"][1], 0.9433, 5e-5);
  EXPECT_TRUE(share_json(0, 0)["value"].is_null());
}

}  // namespace sparsight::attack_piece_test
