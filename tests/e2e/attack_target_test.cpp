// attack --target and --only-classes as a user runs them: results, files, several epsilons, transfers, refusals.
#include <filesystem>

#include <ATen/TensorOperators.h>

#include "sparsight/eval/records.h"
#include "sparsight/io/safetensors.h"
#include "tests/e2e/attack_fixture.h"
#include "tests/e2e/output.h"
#include "tests/support/unchecked_json.h"

namespace sparsight::testing::attack_target_test {
namespace {

namespace fs = std::filesystem;

// The classes of its run are arrow, house, bolt and spiral.
class AttackTarget : public AttackFixture {
 protected:
  static at::Tensor saved(const std::string& folder, const char* name) {
    const TensorFile file = read_safetensors(folder + "/adversarial.safetensors");
    return std::map<std::string, at::Tensor>(file.tensors.begin(), file.tensors.end()).at(name);
  }
};

int64_t count_of(const at::Tensor& flags) { return flags.sum().item<int64_t>(); }

void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

}  // namespace

TEST_F(AttackTarget, RatesAgreeWithTheRecords) {
  const Json found = result("--attack apgd --eps 64/255 --set attack.steps=20 --target arrow --out " + at("arrow"));
  const Records after = read_records(at("arrow/records")), before = read_records(at("arrow/clean_records"));
  const at::Tensor others = before.label.ne(0), clean = before.prediction.eq(before.label);
  EXPECT_EQ(found["success_rate"]["count"], count_of(others & after.prediction.eq(0)));
  EXPECT_EQ(found["success_rate"]["of"], count_of(others));
  EXPECT_EQ(found["target"]["predicted_clean"]["count"], count_of(others & before.prediction.eq(0)));
  EXPECT_GT(found["success_rate"]["count"], found["target"]["predicted_clean"]["count"]);
  EXPECT_EQ(found["target"]["left_out"], 64 - count_of(others));
  EXPECT_EQ(found["target"]["given"], "arrow");
  EXPECT_EQ(found["target"]["class"], 0);
  EXPECT_EQ(found["robust_accuracy"]["count"], count_of(clean & after.prediction.eq(after.label)));
  EXPECT_TRUE(saved(at("arrow"), "target").eq(0).all().item<bool>());
  EXPECT_TRUE(saved(at("arrow"), "norm").masked_select(~others).eq(0).all().item<bool>());
  EXPECT_TRUE(saved(at("arrow"), "stage").eq(0).eq(others & after.prediction.eq(0)).all().item<bool>());
  const std::string csv = bytes(at("arrow/images.csv"));
  EXPECT_NE(csv.find(",misclassified_in_8_bits,target\n"), std::string::npos) << csv.substr(0, 200);
  EXPECT_EQ(found["stages"][0]["settings"]["target"], "0");
}

TEST_F(AttackTarget, TheTextAndTheReportNameIt) {
  const std::string fgsm = "--attack fgsm --eps 8/255 --target ";
  const ProgramResult one = attack(fgsm + "1");
  ASSERT_EQ(one.exit_code, 0) << one.err;
  expect_parts(one.out, {"targeted at class 1 (house)\n", "success is a prediction of the target, class 1 (house)\n",
                         "predicted as the target before the attack ", "left out of the success rate: 16 images",
                         "at target", "target 1\n"});
  const ProgramResult own = attack(fgsm + "least_likely");
  ASSERT_EQ(own.exit_code, 0) << own.err;
  expect_parts(own.out, {"targeted at the least likely wrong class of each image\n",
                         "left out of the success rate: 0 images whose label is the target\n"});
  result("--attack fgsm --eps 8/255");
  const std::string table = run_program({"report", run(), "--format", "markdown"}).out;
  expect_parts(table, {"| fgsm_linf_8_255_to_1 |", "| class 1 (house) |", "| fgsm_linf_8_255_to_least_likely |"});
  ASSERT_EQ(run_program({"report", run()}).exit_code, 0);
  expect_parts(bytes(run() + "/report.html"), {"targeted at class 1 (house)", "a prediction of the target"});
  fs::remove_all(run() + "/attacks");
}

TEST_F(AttackTarget, EveryImageHasItsTargetWhateverTheBatch) {
  for (const std::string target : {"random", "least_likely"}) {
    const std::string how = "--attack apgd --eps 8/255 --exact --images 20 --set attack.steps=3 --target " + target;
    const std::string four = at(target + "4"), sixteen = at(target + "16");
    result(how + " --batch 4 --out " + four);
    result(how + " --batch 16 --out " + sixteen);
    expect_same_records(four, sixteen);
    const at::Tensor targets = saved(four, "target"), labels = saved(four, "label");
    EXPECT_FALSE(targets.eq(labels).any().item<bool>());
  }
  // A random target follows from the seed and the image's number in the split, not from which images are attacked.
  result("--attack fgsm --eps 8/255 --target random --out " + at("all"));
  const at::Tensor all = saved(at("all"), "target"), some = saved(at("random4"), "target");
  EXPECT_TRUE(all.index_select(0, saved(at("random4"), "image")).equal(some));
  result("--attack fgsm --eps 8/255 --target random --seed 1 --out " + at("seed"));
  EXPECT_FALSE(saved(at("seed"), "target").equal(all));
}

TEST_F(AttackTarget, AFolderIsOfOneTarget) {
  const std::string fgsm = "--attack fgsm --eps 8/255 --images 16 --out " + at("one");
  result(fgsm + " --target house");
  EXPECT_EQ(result(fgsm + " --set attack.target=1")["target"]["class"], 1);  // the same attack
  expect_failure(attack(fgsm + " --target 2"), 1, "attack.stages.0.settings.target = \"1\", not \"2\"");
  expect_failure(attack(fgsm), 1, "attack.stages.0.settings.target = \"1\", not \"none\"");
  // An index from before there were targets is of an untargeted attack.
  const std::string old = "--attack fgsm --eps 8/255 --images 8 --out " + at("old");
  result(old);
  Json index = unchecked_json(bytes(at("old/attack.json")));
  ASSERT_EQ(index["identity"]["attack"]["stages"][0]["settings"].erase("target"), 1u) << index;
  ASSERT_EQ(index["identity"]["data"].erase("classes"), 1u) << index;
  write_file_atomically(at("old/attack.json"), index.dump(2));
  EXPECT_EQ(result(old)["images"], 8);
  expect_failure(attack(old + " --target 2"), 1, "settings.target = \"none\", not \"2\"");
}

// Neither had pgd and fab their newer settings: a finished attack of an older index is printed again.
TEST_F(AttackTarget, AFolderFromBeforeASettingWasAddedIsReadAgain) {
  for (const auto& [name, setting] : {std::pair<std::string, std::string>{"pgd", "sparsity"}, {"fab", "distances"}}) {
    const std::string old =
        "--attack " + name + " --eps 8/255 --images 4 --set attack.steps=2 --out " + at("old_" + name);
    result(old);
    Json index = unchecked_json(bytes(at("old_" + name + "/attack.json")));
    Json& settings = index["identity"]["attack"]["stages"][0]["settings"];
    ASSERT_EQ(settings.erase(setting), 1u) << index;
    ASSERT_EQ(settings.erase("target"), 1u) << index;
    write_file_atomically(at("old_" + name + "/attack.json"), index.dump(2));
    EXPECT_EQ(result(old)["images"], 4);
    expect_failure(attack(old + " --set attack.restarts=2"), 1, "settings.restarts = 1, not 2");
  }
}

TEST_F(AttackTarget, CurvesRiseInTheSuccessRate) {
  const Json curve = result("--attack apgd --eps 4/255,96/255 --set attack.steps=20 --target 0 --out " + at("curve"));
  EXPECT_EQ(curve["target"]["name"], "arrow");
  EXPECT_GT(curve["points"][1]["success_rate"]["count"], curve["points"][0]["success_rate"]["count"]);
  EXPECT_TRUE(curve["notes"].empty()) << curve["notes"];  // nothing about grey images, which need not be of the target
  EXPECT_TRUE(curve["warnings"].empty()) << curve["warnings"];
}

TEST_F(AttackTarget, TransferredImagesKeepTheirTargets) {
  const std::string how = "--attack pgd --eps 24/255 --set attack.steps=6 --target random --out " + at("from");
  const Json own = result(how + "/own"), transferred = result(how + " --transfer-from " + run());
  for (const char* key : {"clean_accuracy", "robust_accuracy", "success_rate", "target"})
    EXPECT_EQ(transferred[key], own[key]) << key;
  const ProgramResult text = attack(how + " --transfer-from " + run());
  expect_parts(text.out, {"targeted at a random wrong class of each image"});
}

TEST_F(AttackTarget, OnlyImagesOfChosenClasses) {
  const Json found = result("--attack fgsm --eps 8/255 --only-classes spiral,0 --images 10 --out " + at("two"));
  EXPECT_EQ(found["images"], 10);
  EXPECT_EQ(found["data"]["of"], 32);
  EXPECT_EQ(found["data"]["classes"], Json::array({"spiral", "arrow"}));
  const at::Tensor labels = saved(at("two"), "label");
  EXPECT_EQ(count_of(labels.eq(0)), 5);  // evenly
  EXPECT_EQ(count_of(labels.eq(3)), 5);
  const ProgramResult said = attack("--attack fgsm --eps 8/255 --only-classes 1 --out " + at("house"));
  expect_parts(said.out, {"16 of 16 images of the test split of glyphs, only of the classes house, fingerprint"});
  // The same images as without the choice: random numbers follow from the number in the split.
  result("--attack fgsm --eps 8/255 --out " + at("whole"));
  const at::Tensor number = saved(at("house"), "image");
  EXPECT_TRUE(saved(at("whole"), "pixels").index_select(0, number).allclose(saved(at("house"), "pixels"), 0, 0.07));
  EXPECT_TRUE(saved(at("whole"), "label").index_select(0, number).eq(1).all().item<bool>());
  expect_failure(attack("--attack fgsm --eps 8/255 --only-classes 2 --out " + at("house")), 1, "data.classes.0");
}

TEST_F(AttackTarget, RefusesWhatMakesNoSense) {
  const auto refused = [](const std::string& text, int code, const std::string& says) {
    expect_failure(attack(text), code, says);
  };
  refused("--attack pgd --target hose", 2, "unknown class \"hose\"; did you mean \"house\"?");
  refused("--attack pgd --target 4", 2, "there is no class 4: the numbers of the 4 classes are 0 to 3");
  refused("--attack pgd --target=-1", 2, "there is no class -1");
  refused("--attack pgd --target nan", 2, "unknown class \"nan\"");
  refused("--attack pgd --target=", 2, "--target");
  refused("--target bolt", 2, "autoattack is untargeted");
  refused("--attack apgd_t --target bolt", 2, "use --attack fgsm or --attack pgd");
  refused("--attack pgd --target bolt --set attack.target=bolt", 2, "are the same setting");
  refused("--attack pgd --target bolt --only-classes bolt", 2, "the label of all 16 images is the target, bolt");
  refused("--attack pgd --only-classes hose", 2, "did you mean \"house\"?");
  refused("--attack pgd --only-classes bolt,bolt", 2, "the class 2 is named twice");
  refused("--attack pgd --only-classes bolt,2", 2, "the class 2 is named twice");
  refused("--attack pgd --only-classes bolt,,house", 2, "--only-classes has an empty entry");
  refused("--attack pgd --only-classes=", 2, "--only-classes");
  refused("--attack pgd --only-classes bolt --images 17", 1, "has 16 images of these classes, not 17");
  EXPECT_FALSE(fs::exists(run() + "/attacks"));
}

}  // namespace sparsight::testing::attack_target_test
