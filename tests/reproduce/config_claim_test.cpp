#include "sparsight/reproduce/config_claim.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/errors.h"

namespace sparsight::config_claim_test {
namespace {

using testing::error_text;

TEST(ConfigClaim, ReadsTheHeader) {
  const auto claims = read_claims(
      "# A model.\n# claim: test accuracy >= 97.0 %\n[run]\n#Claim:   validation loss <= 0.25 \nseed = 0\n", "x.toml");
  ASSERT_EQ(claims.size(), 2u);
  EXPECT_EQ(claims[0].split, "test");
  EXPECT_EQ(claims[0].measure, "accuracy");
  EXPECT_TRUE(claims[0].at_least);
  EXPECT_EQ(claims[0].level, 97);
  EXPECT_EQ(claims[1].split, "val");
  EXPECT_EQ(claims[1].measure, "loss");
  EXPECT_FALSE(claims[1].at_least);
  EXPECT_EQ(claims[1].level, 0.25);
  EXPECT_EQ(claims[1].text, "validation loss <= 0.25");
}

TEST(ConfigClaim, SaysWhichLineIsWrong) {
  const auto message = [](const std::string& line) {
    return error_text<UsageError>([&] { read_claims("\n" + line + "\n", "x.toml"); });
  };
  for (const char* line : {"# claim: test accuracy >= 97.0", "# claim: test accuracy > 97 %", "# claim: fast",
                           "# claim: test accuracy >= -1 %", "# claim: test accuracy >= 97.0 % or so",
                           "# claim:", "# claim: train accuracy >= 97.0 %", "# claim: test loss <= 1e3"})
    EXPECT_NE(message(line).find("x.toml:2: the claim \""), std::string::npos) << line;
  EXPECT_NE(message("# claim: test accuracy >= 101 %").find("at most 100 %, got 101"), std::string::npos);
  EXPECT_NE(message("# A claim: none").find("x.toml contains no claim; add a line such as"), std::string::npos);
}

TEST(ConfigClaim, ChecksTheLastEvaluationOfThePart) {
  const auto eval = [](const char* split, int step, double accuracy) -> Json {
    return {{"kind", "eval"}, {"split", split},       {"weights", "model"},
            {"step", step},   {"accuracy", accuracy}, {"loss", 0.2}};
  };
  const std::vector<Json> metrics = {eval("val", 1, 0.99), eval("val", 2, 0.5), eval("test", 2, 0.975)};
  const auto check = [&](const char* claim) {
    return check_claims(read_claims(std::string("# claim: ") + claim, "x"), metrics).at(0);
  };
  EXPECT_EQ(check("test accuracy >= 97.5 %").measured, "97.50 %");
  EXPECT_TRUE(*check("test accuracy >= 97.5 %").holds);
  EXPECT_FALSE(*check("test accuracy >= 97.6 %").holds);
  EXPECT_EQ(check("validation accuracy >= 60 %").measured, "50.00 %");
  EXPECT_FALSE(*check("validation accuracy >= 60 %").holds);
  EXPECT_TRUE(*check("validation loss <= 0.2").holds);
  // Wilson's interval of 390 of 400: centre 0.975 + 3.841459 / 800 = 0.979802, half 1.959964 sqrt(0.975 x 0.025 / 400 +
  // 3.841459 / 640000) = 0.016036, both over 1 + 3.841459 / 400.
  Json counted = eval("test", 3, 0.975);
  counted["images"] = 400;
  EXPECT_EQ(check_claims(read_claims("# claim: test accuracy >= 97.5 %", "x"), {counted}).at(0).measured,
            "97.50 % (95 % CI: 95.46 to 98.64)");
  const Claim unknown = check_claims(read_claims("# claim: test loss <= 1", "x"), {eval("val", 1, 0.9)}).at(0);
  EXPECT_FALSE(unknown.holds.has_value());
  EXPECT_EQ(unknown.measured, "the run has no loss on the test split");
}

}  // namespace
}  // namespace sparsight::config_claim_test
