// The attack verb over several epsilons and in fp64, and attacks in the report of a run.
#include <algorithm>
#include <filesystem>

#include "tests/e2e/attack_fixture.h"
#include "tests/e2e/output.h"

namespace sparsight::testing::attack_curve_test {
namespace {

namespace fs = std::filesystem;

class AttackCurve : public AttackFixture {};

}  // namespace

TEST_F(AttackCurve, EachEpsilonIsAnAttackOfItsOwn) {
  const std::string pgd = "--attack pgd --set attack.steps=6 --batch 32 --out ";
  const Json curve = result("--eps 16/255,2/255 " + pgd + at("curve")), single = result("--eps 2/255 " + pgd + at("2"));
  ASSERT_EQ(curve["points"].size(), 2u);  // by ascending epsilon
  EXPECT_EQ(curve["points"][0]["given"], "2/255");
  EXPECT_EQ(curve["points"][0]["robust_accuracy"], single["robust_accuracy"]);
  EXPECT_EQ(curve["points"][0]["routing"], single["routing"]);
  EXPECT_LT(curve["points"][1]["robust_accuracy"]["count"], curve["points"][0]["robust_accuracy"]["count"]);
  expect_same_records(at("curve/eps_2_255"), at("2"));
  EXPECT_EQ(bytes(at("curve/eps_2_255/attack.json")), bytes(at("2/attack.json")));
  EXPECT_NE(curve["notes"].dump().find("no epsilon is as large as 0.5"), std::string::npos);
  const std::string csv = bytes(at("curve/curve.csv"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
  EXPECT_NE(csv.find("\n16/255,0.062745098,pgd,"), std::string::npos) << csv;
  EXPECT_NE(bytes(at("curve/curve.html")).find("chart-specs\">[{"), std::string::npos);
  EXPECT_EQ(Json::parse(bytes(at("curve/curve.json"))), curve);
}

// Epsilons that are done are read again, the others follow.
TEST_F(AttackCurve, GoesOnWhereItWas) {
  const std::string settings = "--attack fgsm --out " + at("resumed");
  result("--eps 1/255,4/255 " + settings);
  const auto written = fs::last_write_time(at("resumed/eps_4_255/result.json"));
  fs::remove(at("resumed/curve.json"));
  const Json curve = result("--eps 1/255,4/255,200/255 " + settings);
  EXPECT_EQ(curve["points"].size(), 3u);
  EXPECT_EQ(fs::last_write_time(at("resumed/eps_4_255/result.json")), written);
  EXPECT_TRUE(curve["notes"].empty()) << curve["notes"];  // 200/255 is large
  const ProgramResult shown = attack("--eps 1/255,4/255,200/255 " + settings);
  EXPECT_EQ(shown.exit_code, 0);
  for (const char* part : {"  0 (clean) ", "  200/255 ",
                           "fgsm, linf, epsilon 1/255,4/255,200/255 of pixels in 0..1, clipped", "routing changed"})
    EXPECT_NE(shown.out.find(part), std::string::npos) << part << " in\n" << shown.out;
}

TEST_F(AttackCurve, RefusesWhatIsNoList) {
  expect_failure(attack("--eps 1/255, --attack fgsm"), 2, "--eps has an empty entry");
  expect_failure(attack("--eps 1/255,2/510 --attack fgsm"), 2, "which are the same");
  expect_failure(attack("--eps 1/255,x --attack fgsm"), 2, "must be a number or a fraction");
  expect_failure(attack("--eps 1,100 --norm l2 --attack fgsm"), 2, "lets every pixel");
  EXPECT_FALSE(fs::exists(run() + "/attacks"));
  result("--eps 1/255 --attack fgsm --images 8 --out " + at("taken"));
  expect_failure(attack("--eps 1/255,2/255 --attack fgsm --images 8 --out " + at("taken")), 2, "it holds ");
}

}  // namespace sparsight::testing::attack_curve_test
