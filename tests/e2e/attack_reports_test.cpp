// Attacks within the l1 ball, the distances of FAB, and entries of RobustBench, as a user asks for them.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>

#include <ATen/TensorOperators.h>
#include <nlohmann/json.hpp>

#include "sparsight/eval/records.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/safetensors.h"
#include "tests/e2e/attack_fixture.h"
#include "tests/e2e/output.h"

namespace sparsight::testing::attack_reports_test {
namespace {

class AttackReports : public AttackFixture {
 protected:
  static ProgramResult robustbench(const std::string& path, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"report", path, "--format", "robustbench", "--quiet"});
    return run_program(more);
  }
};

std::map<std::string, at::Tensor> saved_tensors(const std::string& path) {
  const TensorFile file = read_safetensors(path);
  return {file.tensors.begin(), file.tensors.end()};
}

}  // namespace

TEST_F(AttackReports, TheL1NormBoundsTheSumOfChanges) {
  for (const char* name : {"apgd", "pgd"}) {
    const Json found =
        result(std::string("--attack ") + name + " --norm l1 --eps 6 --set attack.steps=30 --out " + at(name));
    EXPECT_EQ(found["threat"]["norm"], "l1");
    EXPECT_LT(found["robust_accuracy"]["count"], found["clean_accuracy"]["count"]) << name;
    EXPECT_LE(found["saved_images"]["largest_norm"], 6.0);
    EXPECT_GT(found["saved_images"]["largest_norm"], 5.9);
    EXPECT_GE(found["saved_images"]["lowest"], 0.0);
    EXPECT_LE(found["saved_images"]["highest"], 1.0);
  }
  const ProgramResult again = attack("--attack apgd --norm l1 --eps 6 --set attack.steps=30 --out " + at("apgd"));
  EXPECT_NE(again.out.find("apgd, l1, epsilon 6 of pixels in 0..1, which is 6 of pixels in 0..1, clipped to them"),
            std::string::npos)
      << again.out;
  const std::map<std::string, at::Tensor> saved = saved_tensors(at("apgd/adversarial.safetensors"));
  EXPECT_FALSE(saved.contains("distance"));
}

TEST_F(AttackReports, NormsAreRefusedWhereAnAttackHasNoStepsForThem) {
  for (const char* asked : {"--attack square", "--attack fgsm", ""})
    expect_failure(attack(std::string(asked) + " --norm l1 --eps 6 --out " + at("refused")), 2,
                   "does not take the norm l1; use --attack pgd");
  expect_failure(attack("--attack pgd --norm l1 --eps 1000 --out " + at("refused")), 2,
                 "the l1 epsilon 1000 lets every");
  expect_failure(attack("--attack pgd --norm l3 --out " + at("refused")), 2, "--norm");
  EXPECT_FALSE(std::filesystem::exists(at("refused")));
}

TEST_F(AttackReports, FabSaysHowSmallThePerturbationsAre) {
  const std::string fab = "--attack fab --eps 1/255 --set attack.steps=10 --images 24 ";
  const ProgramResult ended = attack(fab + "--set attack.distances=true --out " + at("far"));
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_NE(ended.out.find("smallest perturbation that fools, in linf: 5 %: "), std::string::npos) << ended.out;
  const Json far = Json::parse(bytes(at("far/result.json")));
  const Json near = result(fab + "--out " + at("near"));
  const std::map<std::string, at::Tensor> saved = saved_tensors(at("far/adversarial.safetensors"));
  const Records clean = read_records(at("far/clean_records")), after = read_records(at("far/records"));
  const at::Tensor correct = clean.prediction.eq(clean.label), robust = correct & after.prediction.eq(after.label);
  const at::Tensor& distance = saved.at("distance");
  EXPECT_EQ(far["distances"]["of"], correct.sum().item<int64_t>());
  EXPECT_EQ(far["distances"]["found"], (correct & (distance < INFINITY)).sum().item<int64_t>());
  EXPECT_EQ(far["distances"]["beyond_epsilon"], true);
  EXPECT_EQ(near["distances"]["beyond_epsilon"], false);
  EXPECT_GT(far["distances"]["found"], near["distances"]["found"]);
  EXPECT_EQ(far["robust_accuracy"]["count"], near["robust_accuracy"]["count"]);
  EXPECT_EQ(robust.sum().item<int64_t>(), far["robust_accuracy"]["count"]);
  EXPECT_TRUE(saved.at("norm").le(1.0 / 255 * (1 + 1e-6)).all().item<bool>());
  EXPECT_TRUE(distance.eq(0).equal(~correct));
  const std::string csv = bytes(at("near/images.csv"));
  EXPECT_NE(csv.find(",misclassified_in_8_bits,distance\n"), std::string::npos);
  EXPECT_EQ(bytes(at("far/images.csv")).find("inf"), std::string::npos);
  expect_failure(attack("--set attack.distances=true --out " + at("refused")), 2,
                 "attack.distances is of single attacks");
}

TEST_F(AttackReports, AnAutoAttackBecomesAnEntryOfRobustBench) {
  const std::string run_attacks = run() + "/attacks";
  expect_failure(robustbench(run()), 1, "has no finished AutoAttack in attacks/");
  result("--set attack.steps=2 --set attack.queries=5 --set attack.targets=1 --images 8 --eps 8/255");
  expect_failure(robustbench(run()), 1, "but of this one: not the standard cascade of AutoAttack: steps = 2");
  result("--attack fgsm --eps 8/255");
  expect_failure(robustbench(run_attacks + "/fgsm_linf_8_255"), 1, "this attack is fgsm; run sparsight attack without");
  // As the whole attack would have written it.
  Json standard = Json::parse(bytes(run_attacks + "/autoattack_linf_8_255/result.json"));
  standard.erase("xxh3");
  standard["notes"] = Json::array();
  const std::string folder = run_attacks + "/autoattack_by_hand";
  std::filesystem::create_directories(folder);
  write_file_atomically(folder + "/result.json", standard.dump());
  expect_failure(robustbench(run()), 1, "has several AutoAttacks; give the folder of one: ");
  expect_failure(robustbench(folder), 1, "this attack is of 8 of 64 images; attack without --images");
  standard["images"] = 64;
  write_file_atomically(folder + "/result.json", standard.dump());
  const ProgramResult ended = robustbench(folder, {"--field", "venue=ICLR 2026", "--field", "name=A=B"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const Json entry = Json::parse(ended.out);
  EXPECT_EQ(entry["eps"], "8/255");
  EXPECT_EQ(entry["dataset"], "glyphs");
  EXPECT_EQ(entry["architecture"], "vit");
  EXPECT_EQ(entry["venue"], "ICLR 2026");
  EXPECT_EQ(entry["name"], "A=B");
  EXPECT_NE(ended.err.find("these fields are empty: link, authors; give them as --field link=VALUE"), std::string::npos)
      << ended.err;
  ASSERT_EQ(robustbench(folder, {"--out", at("entry.json")}).exit_code, 0);
  EXPECT_EQ(Json::parse(bytes(at("entry.json")))["autoattack_acc"], entry["autoattack_acc"]);
  standard["threat"]["epsilon"] = 2.0 / 255;
  write_file_atomically(folder + "/result.json", standard.dump());
  expect_failure(robustbench(folder), 1, "give --any-eps to write it all the same");
  EXPECT_EQ(robustbench(folder, {"--any-eps"}).exit_code, 0);
  expect_failure(robustbench(folder, {"--field", "venu=x"}), 2, "did you mean \"venue\"?");
  expect_failure(robustbench(folder, {"--baseline", run()}), 2, "--baseline goes with");
  expect_failure(run_program({"report", run(), "--field", "venue=x"}), 2, "--field and --any-eps go with");
}

}  // namespace sparsight::testing::attack_reports_test
