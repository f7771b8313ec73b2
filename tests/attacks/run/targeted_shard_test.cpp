// Targeted attacks on pieces: what counts as success, what is left out, saved and resumed; and what a request means.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <nlohmann/json.hpp>

#include "sparsight/attacks/attack_saver.h"
#include "sparsight/attacks/run/attack_summary.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"
#include "tests/support/random_tensor.h"

namespace sparsight::targeted_shard_test {
namespace {

at::Tensor small_network(const at::Tensor& x) {
  static const at::Tensor first = test::random_tensor({12, 32}, 3).to(torch::kFloat),
                          second = test::random_tensor({5, 12}, 4).to(torch::kFloat);
  return (x.flatten(1) - 0.5).matmul(first.t()).sin().matmul(second.t());
}

// Image i has label i % 5, which need not be what the network says.
AttackedBatch images_of_all_classes(int64_t count) {
  const at::Tensor x = (0.5 + 0.2 * test::random_tensor({count, 2, 4, 4}, 8)).clamp(0, 1).to(torch::kFloat);
  return {{x, {torch::arange(count, torch::kLong) % 5}, torch::arange(count, torch::kLong)},
          torch::zeros({count}, torch::kLong),
          std::vector<std::string>(static_cast<size_t>(count), "image"),
          "0123456789abcdef"};
}

AttackRequest request_towards(const std::string& attack, const std::string& target,
                              const std::vector<std::string>& settings = {}) {
  AttackRequest request;
  request.attack = attack;
  request.target = target;
  request.epsilon = "0.05";
  request.overrides = settings;
  return request;
}

const std::vector<std::string> kNames{"ant", "bee", "cat", "dog", "eel"};

AttackPlan plan_towards(const std::string& attack, const std::string& target,
                        const std::vector<std::string>& settings = {}) {
  AttackPlan plan = plan_attack(request_towards(attack, target, settings));
  fit_to_labels(plan, false);
  fit_to_target(plan, kNames);
  fit_to_classes(plan, 5);
  return plan;
}

AttackShard towards_piece(ObservedModel& model, const AttackPlan& plan, const AttackedBatch& images,
                          int64_t batch = 16) {
  return attack_shard(model, images, {plan, {plan.threat, 7}, batch});
}

std::string plan_error(const AttackRequest& request) {
  return testing::error_text<UsageError>([&] { plan_attack(request); });
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

int64_t number_of(const at::Tensor& flags) { return flags.sum().item<int64_t>(); }

}  // namespace

// Four images of 3 classes: label 0, predicted 0 then 2; label 1, 2 and 2; label 2, 2 and 2; label 1, 1 and 0.
TEST(AttackSuccess, OfATargetedAttackIsThePredictionOfTheTarget) {
  const at::Tensor before = torch::eye(3).index_select(0, torch::tensor({0, 2, 2, 1})),
                   after = torch::eye(3).index_select(0, torch::tensor({2, 2, 2, 0})),
                   label = torch::tensor({0, 1, 2, 1}, torch::kLong), two = torch::full({4}, 2, torch::kLong);
  const AttackSuccess targeted = attack_success(before, after, label, two),
                      free = attack_success(before, after, label, {});
  EXPECT_TRUE(torch::equal(targeted.counted, torch::tensor({true, true, false, true})));
  EXPECT_TRUE(torch::equal(targeted.reached, torch::tensor({true, true, false, false})));
  EXPECT_TRUE(torch::equal(free.counted, torch::tensor({true, false, true, true})));
  EXPECT_TRUE(torch::equal(free.reached, torch::tensor({true, false, false, true})));
}

TEST(TargetedShard, RatesAreThoseOfTheLastPass) {
  AttackedFunction inner(small_network);
  ObservedModel model(inner, false);
  const AttackedBatch images = images_of_all_classes(40);
  const AttackPlan plan = plan_towards("pgd", "cat", {"attack.steps=8"});
  AttackShard piece = towards_piece(model, plan, images);
  const at::Tensor before = small_network(images.batch.pixels).argmax(1), after = small_network(piece.pixels).argmax(1),
                   &label = images.batch.labels.label, others = label.ne(2);
  EXPECT_TRUE(piece.target.eq(2).all().item<bool>());
  AttackSummary summary(plan);
  summary.add(piece, check_piece(model, images, piece, plan.threat, true, 16));
  const Json json = summary.json();
  EXPECT_EQ(json["success_rate"]["count"], number_of(others & after.eq(2)));
  EXPECT_EQ(json["success_rate"]["of"], 32);
  EXPECT_GT(json["success_rate"]["count"], json["target"]["predicted_clean"]["count"]);
  EXPECT_EQ(json["target"]["predicted_clean"]["count"], number_of(others & before.eq(2)));
  EXPECT_EQ(json["target"]["left_out"], 8);
  EXPECT_EQ(json["target"]["class"], 2);
  EXPECT_EQ(json["target"]["name"], "cat");
  EXPECT_EQ(json["clean_accuracy"]["count"], number_of(before.eq(label)));
  EXPECT_EQ(json["robust_accuracy"]["count"], number_of(before.eq(label) & after.eq(label)));
  EXPECT_EQ(json["stages"][0]["robust_after"]["count"], json["robust_accuracy"]["count"]);
  EXPECT_EQ(json["saved_images"]["of"], json["success_rate"]["count"]);
  EXPECT_EQ(json["saved_images"]["misclassified"], json["success_rate"]["count"]);
  EXPECT_TRUE(torch::equal(piece.stage, (others & after.eq(2)).to(torch::kLong) - 1));
  EXPECT_TRUE(summary.warnings().empty());
  // Those whose label is the target cost the first pass alone and stay as they are.
  EXPECT_TRUE(piece.norm.masked_select(~others).eq(0).all().item<bool>());
  EXPECT_TRUE(piece.queries.masked_select(~others).eq(1).all().item<bool>());
}

TEST(TargetedShard, TargetsDoNotDependOnTheBatchOrThePiece) {
  AttackedFunction inner(small_network);
  const AttackedBatch images = images_of_all_classes(30);
  for (const char* target : {"dog", "random", "least_likely"}) {
    const AttackPlan plan = plan_towards("fgsm", target);
    ObservedModel model(inner, true), other(inner, true), part(inner, true);
    const AttackShard all = towards_piece(model, plan, images, 16), small = towards_piece(other, plan, images, 4);
    EXPECT_TRUE(torch::equal(all.target, small.target)) << target;
    EXPECT_TRUE(torch::equal(all.pixels, small.pixels)) << target;
    AttackedBatch last = images;
    last.batch = images.batch.select(torch::arange(20, 30, torch::kLong));
    const AttackShard piece = towards_piece(part, plan, last, 16);
    EXPECT_TRUE(torch::equal(piece.target, all.target.narrow(0, 20, 10))) << target;
    EXPECT_TRUE(torch::equal(piece.pixels, all.pixels.narrow(0, 20, 10))) << target;
    if (std::string(target) != "dog") {
      EXPECT_TRUE(all.target.ne(images.batch.labels.label).all().item<bool>()) << target;
    }
  }
}

// A piece may be of the target's class alone, though not the whole attack.
TEST(TargetedShard, ATargetThatIsEveryLabelLeavesAllImagesOut) {
  AttackedFunction inner(small_network);
  ObservedModel model(inner, false);
  AttackedBatch images = images_of_all_classes(10);
  images.batch.labels.label = torch::full({10}, 3, torch::kLong);
  const AttackPlan plan = plan_towards("apgd", "3", {"attack.steps=5"});
  AttackShard piece = towards_piece(model, plan, images);
  EXPECT_TRUE(torch::equal(piece.pixels, images.batch.pixels));
  EXPECT_EQ(piece.cost.gradients, 0);
  EXPECT_EQ(piece.cost.queries, 10);
  AttackSummary summary(plan);
  summary.add(piece, check_piece(model, images, piece, plan.threat, true, 16));
  const Json json = summary.json();
  EXPECT_EQ(json["success_rate"]["of"], 0);
  EXPECT_TRUE(json["success_rate"]["value"].is_null());
  EXPECT_EQ(json["target"]["left_out"], 10);
  EXPECT_EQ(json["robust_accuracy"], json["clean_accuracy"]);
  EXPECT_TRUE(summary.warnings().empty());
}

TEST(TargetedShard, SurvivesTheDiskAndRefusesForgedTargets) {
  const testing::TemporaryFolder folder;
  AttackedFunction inner(small_network);
  ObservedModel model(inner, false);
  const AttackShard piece = towards_piece(model, plan_towards("fgsm", "least_likely"), images_of_all_classes(20));
  const PieceShape shape{{20, 2, 4, 4}, 5, 1, true};
  write_piece(folder.path("0-20"), piece);
  EXPECT_TRUE(torch::equal(read_piece(folder.path("0-20"), shape).target, piece.target));
  const auto refusal = [&](const char* name, const at::Tensor& target) {
    AttackShard forged = piece;
    forged.target = target;
    write_piece(folder.path(name), forged);
    return testing::error_text([&] { read_piece(folder.path(name), shape); });
  };
  EXPECT_TRUE(has(refusal("high", torch::full({20}, 5, torch::kLong)), "tensor target has numbers of no class"));
  EXPECT_TRUE(has(refusal("low", torch::full({20}, -1, torch::kLong)), "tensor target has numbers of no class"));
  EXPECT_TRUE(has(refusal("short", torch::zeros({19}, torch::kLong)), "tensor target is missing or of another shape"));
  EXPECT_TRUE(has(refusal("none", {}), "tensor target is missing or of another shape"));
}

// Killed in the second of the batches of 16: what the first one reached is known.
TEST(TargetedShard, AKilledAttackGoesOn) {
  const testing::TemporaryFolder folder;
  AttackedFunction inner(small_network);
  const AttackedBatch images = images_of_all_classes(40);
  const AttackPlan plan = plan_towards("pgd", "random", {"attack.steps=6"});
  ObservedModel whole(inner, false), killed(inner, false), resumed(inner, false);
  const AttackShard expected = towards_piece(whole, plan, images);
  PieceAttack how{plan, {plan.threat, 7}, 16};
  AttackSaver saver(folder.path("state"), killed, 0);
  how.context.saver = &saver;
  int64_t calls = 0;
  how.progress = [&](size_t, int64_t) {
    if (++calls == 2) fail("killed");
  };
  EXPECT_EQ(testing::error_text([&] { attack_shard(killed, images, how); }), "killed");
  AttackSaver again(folder.path("state"), resumed, 0);
  how.context.saver = &again;
  how.progress = {};
  const AttackShard found = attack_shard(resumed, images, how);
  EXPECT_TRUE(torch::equal(found.pixels, expected.pixels));
  EXPECT_TRUE(torch::equal(found.stage, expected.stage));
  EXPECT_TRUE(torch::equal(found.target, expected.target));
  EXPECT_TRUE(torch::equal(found.queries, expected.queries));
  EXPECT_EQ(found.cost.queries, expected.cost.queries);
  EXPECT_EQ(found.cost.gradients, expected.cost.gradients);
}

TEST(TargetedPlan, TheTargetIsASettingOfTheAttack) {
  const AttackPlan by_name = plan_towards("apgd", "dog"), by_number = plan_towards("apgd", "3"),
                   by_setting = plan_towards("apgd", "", {"attack.target=3"}),
                   by_named_setting = plan_towards("apgd", "", {"attack.target=dog"});
  for (const AttackPlan* plan : {&by_name, &by_number, &by_setting, &by_named_setting}) {
    EXPECT_EQ(plan->stages.at(0).settings.at("target"), "3");
    EXPECT_EQ(plan->target_class, 3);
    EXPECT_EQ(plan->target_name, "dog");
  }
  EXPECT_EQ(plan_towards("pgd", "random").stages.at(0).settings.at("target"), "random");
  EXPECT_EQ(plan_towards("pgd", "random").target_class, -1);
  for (const char* none : {"", "none"}) {
    EXPECT_FALSE(plan_towards("pgd", none).targeted());
    EXPECT_EQ(plan_towards("pgd", none).stages.at(0).settings.at("target"), "none");
  }
  EXPECT_EQ(attack_name(request_towards("pgd", "a cat")), "pgd_linf_0.05_to_a_cat");
  EXPECT_EQ(attack_name(request_towards("pgd", "")), "pgd_linf_0.05");
}

TEST(TargetedPlan, DlrNeedsFourClasses) {
  AttackPlan plan = plan_attack(request_towards("apgd", "random", {"attack.loss=dlr"}));
  AttackPlan three = plan;
  fit_to_classes(plan, 4);
  EXPECT_EQ(plan.stages[0].settings["loss"], "dlr");
  fit_to_classes(three, 3);
  EXPECT_EQ(three.stages[0].settings["loss"], "margin");
  ASSERT_EQ(three.notes.size(), 1u);
  EXPECT_EQ(three.notes[0], "apgd maximises the margin: the targeted dlr loss needs 4 classes, the model has 3");
}

TEST(TargetedPlan, RefusesWhatMakesNoSense) {
  const std::string use = "use --attack fgsm or --attack pgd or --attack apgd or --attack fab or --attack square";
  for (const char* attack : {"autoattack", "apgd_t", "fab_t"}) {
    const std::string error = plan_error(request_towards(attack, "random"));
    EXPECT_TRUE(has(error, use)) << error;
    EXPECT_EQ(plan_error(request_towards(attack, "", {"attack.target=random"})), error);
  }
  EXPECT_TRUE(has(plan_error(request_towards("autoattack", "3")), "autoattack is untargeted"));
  EXPECT_TRUE(has(plan_error(request_towards("pgd", "3", {"attack.target=3"})), "are the same setting"));
  EXPECT_TRUE(has(plan_error(request_towards("pgd", "", {"attack.target=1.5"})), "attack.target must be a class"));
  EXPECT_TRUE(has(plan_error(request_towards("pgd", "", {"attack.target=[1]"})), "attack.target must be a class"));
  EXPECT_TRUE(has(plan_error(request_towards("pgd", "", {"attack.target=\"\""})), "attack.target is empty"));
  EXPECT_TRUE(has(testing::error_text<UsageError>([] { plan_towards("pgd", "dgo"); }), "did you mean \"dog\"?"));
  EXPECT_TRUE(has(testing::error_text<UsageError>([] { plan_towards("pgd", "5"); }), "there is no class 5"));
  AttackPlan several = plan_attack(request_towards("pgd", "random"));
  EXPECT_TRUE(has(testing::error_text<UsageError>([&] { fit_to_labels(several, true); }), "leave out the target"));
}

}  // namespace sparsight::targeted_shard_test
