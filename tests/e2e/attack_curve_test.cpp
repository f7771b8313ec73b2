// The attack verb over several epsilons and in fp64, and attacks in the report of a run.
#include <algorithm>
#include <filesystem>

#include <ATen/TensorOperators.h>

#include "sparsight/eval/records.h"
#include "sparsight/io/safetensors.h"
#include "tests/e2e/attack_fixture.h"
#include "tests/e2e/output.h"
#include "tests/support/unchecked_json.h"

namespace sparsight::testing::attack_curve_test {
namespace {

namespace fs = std::filesystem;

class AttackCurve : public AttackFixture {};

at::Tensor saved_tensor(const std::string& folder, const char* name) {
  const TensorFile file = read_safetensors(folder + "/adversarial.safetensors");
  return std::map<std::string, at::Tensor>(file.tensors.begin(), file.tensors.end()).at(name);
}

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
  const auto begun = [](const std::string& folder) {
    Json json = unchecked_json(bytes(folder + "/attack.json"));
    EXPECT_TRUE(json["bytes_per_image"].is_number());
    json.erase("bytes_per_image");  // measured each time
    return json;
  };
  EXPECT_EQ(begun(at("curve/eps_2_255")), begun(at("2")));
  EXPECT_NE(curve["notes"].dump().find("no epsilon is as large as 0.5"), std::string::npos);
  const std::string csv = bytes(at("curve/curve.csv"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
  EXPECT_NE(csv.find("\n16/255,0.062745098,pgd,"), std::string::npos) << csv;
  EXPECT_NE(bytes(at("curve/curve.html")).find("chart-specs\">[{"), std::string::npos);
  EXPECT_EQ(unchecked_json(bytes(at("curve/curve.json"))), curve);
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

// The same attack, but for rounding; its files have fp64.
TEST_F(AttackCurve, DoublePrecisionIsAnAttackOfItsOwn) {
  const std::string apgd = "--attack apgd --eps 4/255 --set attack.steps=6 ";
  const Json wide = result(apgd + "--precision fp64 --out " + at("fp64")),
             narrow = result(apgd + "--out " + at("fp32"));
  EXPECT_EQ(wide["precision"], "fp64");
  EXPECT_EQ(wide["model"]["fingerprint"], narrow["model"]["fingerprint"]);
  EXPECT_EQ(wide["data"]["fingerprint"], narrow["data"]["fingerprint"]);
  EXPECT_LE(std::abs(wide["robust_accuracy"]["count"].get<int>() - narrow["robust_accuracy"]["count"].get<int>()), 1);
  EXPECT_NEAR(wide["loss"]["clean"].get<double>(), narrow["loss"]["clean"].get<double>(), 1e-5);
  const Records records = read_records(at("fp64/clean_records"));
  EXPECT_EQ(records.logits.scalar_type(), at::kDouble);
  // Not fp32 written wider.
  EXPECT_TRUE((records.logits != records.logits.to(at::kFloat).to(at::kDouble)).any().item<bool>());
  EXPECT_TRUE(records.logits.allclose(read_records(at("fp32/clean_records")).logits.to(at::kDouble), 1e-3, 1e-4));
  EXPECT_EQ(saved_tensor(at("fp64"), "pixels").scalar_type(), at::kDouble);
  EXPECT_EQ(saved_tensor(at("fp64"), "logits").scalar_type(), at::kDouble);
  expect_failure(attack(apgd + "--out " + at("fp64")), 1, "holds an attack with precision = \"fp64\", not \"fp32\"");
  expect_failure(attack("--precision fp64 --weights int8 --attack square --eps 4/255"), 2,
                 "leave out --precision or --weights");
  EXPECT_EQ(run_program({"compare", at("fp64"), at("fp32")}).exit_code, 0);
}

// An index from before there was a precision is of fp32.
TEST_F(AttackCurve, FoldersWithoutAPrecisionAreOfFp32) {
  const std::string fgsm = "--attack fgsm --eps 1/255 --images 8 --out " + at("old");
  result(fgsm);
  Json index = unchecked_json(bytes(at("old/attack.json")));
  ASSERT_EQ(index["identity"].erase("precision"), 1u) << index;
  write_file_atomically(at("old/attack.json"), index.dump(2));
  EXPECT_EQ(result(fgsm)["images"], 8);
  expect_failure(attack(fgsm + " --precision fp64"), 1, "precision = \"fp32\", not \"fp64\"");
}

TEST_F(AttackCurve, TheReportOfTheRunShowsItsAttacks) {
  result("--attack pgd --eps 32/255 --set attack.steps=4 --examples 2");
  result("--attack fgsm --eps 4/255,96/255 --examples 1");
  ASSERT_EQ(run_program({"report", run()}).exit_code, 0);
  const std::string page = bytes(run() + "/report.html");
  for (const char* part : {"<details id=\"attacks\" open>", "Attack pgd_linf_32_255", "Attack fgsm_linf_4_255-96_255",
                           "<h3>Routing</h3>", "perturbation, ", "experts, clean", "experts, attacked",
                           "<h3>Epsilon 96/255 of pixels in 0..1</h3>", "<figcaption>Robust accuracy"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  size_t pictures = 0;
  for (size_t at = 0; (at = page.find("alt=\"attacked\"", at)) != std::string::npos; ++at) ++pictures;
  EXPECT_EQ(pictures, 3u);  // two, and one of the largest epsilon of the curve
  const std::string table = run_program({"report", run(), "--format", "table"}).out;
  EXPECT_NE(table.find("  pgd_linf_32_255 "), std::string::npos) << table;
  EXPECT_NE(
      run_program({"report", run(), "--format", "markdown"}).out.find("| fgsm_linf_4_255-96_255 | linf | 4/255 | 64 |"),
      std::string::npos);
  // Damaged files cost a warning.
  write_file_atomically(run() + "/attacks/pgd_linf_32_255/result.json",
                        "{\"stages\": 3, \"routing\": [3, {\"load\": 1}]}");
  write_file_atomically(run() + "/attacks/fgsm_linf_4_255-96_255/curve.json", "[");
  fs::remove(run() + "/attacks/pgd_linf_32_255/examples/000_clean.png");
  ASSERT_EQ(run_program({"report", run()}).exit_code, 0);
  EXPECT_NE(bytes(run() + "/report.html").find("000_clean.png"), std::string::npos);
  fs::remove_all(run() + "/attacks");
}

}  // namespace sparsight::testing::attack_curve_test
