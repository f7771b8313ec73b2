// Files of earlier versions stay readable. A folder tests/compat/VERSION has
//   config.toml      a configuration, as a user of that version wrote it
//   run/             the run folder that it was trained to
//   image.png        an image
//   expected.json    what `sparsight predict run image.png --json --top 4` of that version printed
//   routing.safetensors   what `--save-routing` wrote meanwhile
//   records/         what `sparsight eval run --records` wrote
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "sparsight/io/atomic_file.h"
#include "tests/e2e/output.h"
#include "tests/e2e/train_fixture.h"
#include "tests/support/paths.h"

namespace sparsight::testing::compat_test {
namespace {

namespace fs = std::filesystem;

// Instruction sets round differently: about 1e-7 an operation in fp32, over two blocks.
constexpr double kTolerance = 1e-4;

class Compat : public ::testing::TestWithParam<std::string> {
 protected:
  static std::string file(const std::string& name) {
    return test::source_path("tests/compat/" + GetParam() + "/" + name);
  }
  static Json read_json(const std::string& name) { return Json::parse(read_file(file(name), 1 << 20)); }

  // The last evaluation of the test split that training wrote.
  static Json recorded_test() {
    Json found;
    for (const Json& line : json_lines(read_file(file("run/metrics.jsonl"), 1 << 20)))
      if (line["kind"] == "eval" && line["split"] == "test") found = line;
    return found;
  }
};

void expect_same_prediction(const Json& now, const Json& then) {
  EXPECT_EQ(now["class"], then["class"]);
  ASSERT_EQ(now["classes"].size(), then["classes"].size());
  for (size_t i = 0; i < then["classes"].size(); ++i)
    EXPECT_NEAR(now["classes"][i]["probability"], then["classes"][i]["probability"].get<double>(), kTolerance);
}

TEST_P(Compat, PredictsAsThen) {
  const ProgramResult result = run_program({"predict", file("run"), file("image.png"), "--json", "--top", "4"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  expect_same_prediction(Json::parse(result.out), read_json("expected.json"));
}

TEST_P(Compat, ReplaysARoutingAsThen) {
  const ProgramResult result = run_program(
      {"predict", file("run"), file("image.png"), "--json", "--top", "4", "--routing", file("routing.safetensors")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  expect_same_prediction(Json::parse(result.out), read_json("expected.json"));
}

TEST_P(Compat, EvaluatesAsThen) {
  const ProgramResult result = run_program({"eval", file("run"), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json now = Json::parse(result.out), then = recorded_test();
  EXPECT_EQ(now["accuracy"], then["accuracy"]);
  EXPECT_NEAR(now["loss"], then["loss"].get<double>(), kTolerance);
  EXPECT_EQ(now["layers"][0]["load"], then["layers"][0]["load"]);
}

TEST_P(Compat, ReadsTheConfigurationAndTheRecords) {
  const ProgramResult checked = run_program({"config", "check", file("config.toml")});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  const ProgramResult compared = run_program({"compare", file("records"), file("records")});
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
}

TEST_P(Compat, ResumesTheRunAndWritesItsReport) {
  const TemporaryFolder folder;
  const std::string run = folder.path("run");
  fs::copy(file("run"), run, fs::copy_options::recursive);
  fs::remove(run + "/done");
  const ProgramResult resumed = run_program({"train", "--resume", run, "--quiet"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_TRUE(fs::exists(run + "/done"));
  const ProgramResult report = run_program({"report", run, "--format", "table"});
  EXPECT_EQ(report.exit_code, 0) << report.err;
  EXPECT_NE(report.out.find("blocks.1.mlp"), std::string::npos) << report.out;
}

std::vector<std::string> versions() {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(test::source_path("tests/compat")))
    if (entry.is_directory()) found.push_back(entry.path().filename());
  std::sort(found.begin(), found.end());
  return found;
}

INSTANTIATE_TEST_SUITE_P(Versions, Compat, ::testing::ValuesIn(versions()), [](const auto& version) {
  std::string name = version.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

}  // namespace
}  // namespace sparsight::testing::compat_test
