// `sparsight demo` in an empty folder: it brings its own configuration.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/e2e/train_fixture.h"
#include "tests/support/paths.h"

namespace sparsight::testing::demo_test {
namespace {

// The demo's configuration, cut to a few steps.
ProgramResult run_short_demo(const TemporaryFolder& folder, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"demo"};
  for (const char* setting : {"train.epochs=1", "data.train=128", "data.validation=32", "data.test=32",
                              "model.width=32", "model.depth=2", "moe.blocks=[1]", "run.threads=1"})
    arguments.insert(arguments.end(), {"--set", setting});
  arguments.insert(arguments.end(), more.begin(), more.end());
  ProgramOptions options;
  options.folder = folder.path();
  return run_program(arguments, options);
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST(Demo, TrainsExplainsAndReportsInAnEmptyFolder) {
  const TemporaryFolder folder;
  const ProgramResult result = run_short_demo(folder);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string report = std::filesystem::canonical(folder.path()).string() + "/runs/demo/report.html";
  EXPECT_TRUE(std::filesystem::exists(report));
  EXPECT_TRUE(std::filesystem::exists(folder.path("runs/demo/explain")));
  EXPECT_FALSE(std::filesystem::exists(folder.path("runs/demo_dense")));
  EXPECT_TRUE(says(result.out, "open the report: " + report)) << result.out;
  EXPECT_TRUE(says(result.out, "sparsight attack runs/demo")) << result.out;

  const ProgramResult again = run_short_demo(folder);
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_TRUE(says(again.err, "--overwrite")) << again.err;
  EXPECT_EQ(run_short_demo(folder, {"--overwrite"}).exit_code, 0);
}

TEST(Demo, ComparesWithItsDenseCounterpart) {
  const TemporaryFolder folder;
  const ProgramResult result = run_short_demo(folder, {"--with-dense", "--out", folder.path("made")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(std::filesystem::exists(folder.path("made_dense/report.html")));
  EXPECT_TRUE(says(result.out, "made_dense")) << result.out;
  ProgramOptions options;
  options.folder = folder.path();
  const ProgramResult dense = run_program({"config", "show", folder.path("made_dense/config.toml")}, options);
  EXPECT_TRUE(says(dense.out, "blocks = []")) << dense.out << dense.err;
}

TEST(Demo, PrintsTheConfigurationThatIsBuiltIn) {
  const ProgramResult result = run_program({"demo", "--print-config"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, text_of(test::source_path("configs/demo.toml")));
  EXPECT_EQ(run_program({"demo", "--print-config", "--overwrite"}).exit_code, 2);
}

}  // namespace sparsight::testing::demo_test
