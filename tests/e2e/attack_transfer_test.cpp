// attack --transfer-from: images that fool one model, evaluated on another.
#include <limits>

#include <ATen/TensorOperators.h>

#include "sparsight/io/safetensors.h"
#include "tests/e2e/attack_fixture.h"
#include "tests/e2e/output.h"

namespace sparsight::testing::attack_transfer_test {
namespace {

class AttackTransfer : public AttackFixture {
 protected:
  static void SetUpTestSuite() {
    AttackFixture::SetUpTestSuite();
    for (const auto& [name, change] :
         {std::pair{"wider", "model.width=48"}, std::pair{"other_images", "data.distractors=0"}}) {
      const ProgramResult trained = run_program({"train", at("tiny.toml"), "--out", at(name), "--quiet", "--set",
                                                 "train.epochs=10", "--set", "optimizer.lr=0.005", "--set", change});
      ASSERT_EQ(trained.exit_code, 0) << trained.err;
    }
  }
};

// A model's own images are those of the attack on it.
TEST_F(AttackTransfer, FromTheModelItselfIsTheAttack) {
  const Json own = result("--attack pgd --eps 8/255"),
             transferred = result("--attack pgd --eps 8/255 --transfer-from " + run());
  for (const char* key : {"clean_accuracy", "robust_accuracy", "success_rate", "accuracy_after"})
    EXPECT_EQ(transferred[key], own[key]) << key;
  ASSERT_EQ(transferred["routing"].size(), own["routing"].size());
  for (size_t layer = 0; layer < own["routing"].size(); ++layer)
    EXPECT_EQ(transferred["routing"][layer]["change"], own["routing"][layer]["change"]);
  EXPECT_EQ(transferred["source"]["robust_accuracy"], own["robust_accuracy"]);
  EXPECT_TRUE(std::filesystem::exists(at("run/attacks/pgd_linf_8_255_from_run/transfer.json")));
}

TEST_F(AttackTransfer, AnotherModelsImagesFoolLessOften) {
  const std::string how = "--attack pgd --eps 32/255 --transfer-from " + at("wider");
  const Json found = result(how);
  EXPECT_GE(found["source"]["success_rate"]["value"], found["success_rate"]["value"]);
  EXPECT_GT(found["source"]["success_rate"]["count"], 0);
  EXPECT_EQ(result(how), found);  // the source's attack is read again
  const ProgramResult text = attack(how);
  EXPECT_NE(text.out.find("evaluated"), std::string::npos) << text.out;
  const Json out = result("--attack pgd --eps 4/255 --out " + at("there") + " --transfer-from " + at("wider"));
  EXPECT_TRUE(std::filesystem::exists(at("there/source/adversarial.safetensors")));
  EXPECT_TRUE(std::filesystem::exists(at("there/transfer.json")));
}

TEST_F(AttackTransfer, PackedWeightsAreThoseOfTheEvaluatedModel) {
  const Json found = result("--attack pgd --eps 32/255 --weights int8 --transfer-from " + run() + "/");
  EXPECT_EQ(found["model"]["packed"], "int8");
  EXPECT_EQ(found["source"]["fingerprint"], found["model"]["fingerprint"]);
  EXPECT_TRUE(std::filesystem::exists(at("run/attacks/pgd_linf_32_255_int8_from_run/transfer.json")));
}

TEST_F(AttackTransfer, AFolderHoldsOneResult) {
  const std::string how = "--attack fgsm --eps 16/255 --out " + at("kept") + " --transfer-from ";
  const Json first = result(how + at("wider"));
  EXPECT_EQ(result(how + at("wider")), first);
  expect_failure(attack("--attack fgsm --eps 8/255 --out " + at("kept") + " --transfer-from " + at("wider")), 1,
                 "--out");
  const ProgramResult exact =
      attack("--attack fgsm --eps 16/255 --exact --out " + at("exact") + " --transfer-from " + at("wider"));
  EXPECT_EQ(exact.exit_code, 0) << exact.err;
}

TEST_F(AttackTransfer, RefusesImagesThatAreNoNumbers) {
  const std::string how = "--attack fgsm --eps 16/255 --out " + at("nan") + " --transfer-from " + at("wider");
  result(how);
  const std::string path = at("nan/source/adversarial.safetensors");
  TensorFile file = read_safetensors(path);
  for (auto& [name, tensor] : file.tensors)
    if (name == "pixels") tensor = tensor * std::numeric_limits<float>::quiet_NaN();
  write_safetensors(path, file);
  const ProgramResult damaged = attack(how);
  EXPECT_EQ(damaged.exit_code, 1) << damaged.out;
}

TEST_F(AttackTransfer, RefusesOtherImagesAndLists) {
  expect_failure(attack("--eps 1/255,2/255 --transfer-from " + at("wider")), 2, "--transfer-from takes one epsilon");
  expect_failure(attack("--transfer-from " + at("nowhere")), 1, "nowhere");
  expect_failure(attack("--attack fgsm --eps 1/255 --transfer-from " + at("other_images")), 1, "get different images");
}

}  // namespace
}  // namespace sparsight::testing::attack_transfer_test
