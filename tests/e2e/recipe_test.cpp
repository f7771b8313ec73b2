// Training recipes through the program: what `config show` says about them, and runs that are killed and resumed.
#include <signal.h>

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/metrics_log.h"
#include "tests/e2e/saved_run.h"
#include "tests/support/program.h"

namespace sparsight::testing::recipe_test {
namespace {

// Sixteen steps of a model with one router for the whole image, on grey images of 16 pixels.
constexpr const char* kConfig = R"(
[run]
seed = 3
threads = 1

[data]
name = "glyphs"
classes = 4
side = 16
train = 256
validation = 64
test = 64

[loader]
batch = 64
workers = 1

[model]
width = 32
depth = 3
heads = 2

[moe]
blocks = [-2, -1]
experts = 4

[router]
name = "per_image"

[train]
epochs = 4
log_every = 1
checkpoint_every = 2
)";

std::vector<std::string> losses(const std::string& run) {
  std::vector<std::string> lines;
  for (const Json& line : read_metrics(run + "/metrics.jsonl"))
    if (line["kind"] == "train" || line["kind"] == "eval")
      lines.push_back(cat(line["kind"], line["step"], line["loss"], line["accuracy"]));
  return lines;
}

class WithRecipe : public ::testing::TestWithParam<std::string> {};

TEST_P(WithRecipe, M36_KilledAndResumedHasTheSameLossCurve) {
  const TemporaryFolder folder;
  const std::string config = folder.write("my.toml", kConfig), recipe = "train.recipe=" + GetParam();
  const std::string unbroken = folder.path("unbroken"), killed = folder.path("killed");
  const ProgramResult result = run_program({"train", config, "--set", recipe, "--out", unbroken});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const int64_t step : {4, 10}) {
    Program program(step == 4 ? std::vector<std::string>{"train", config, "--set", recipe, "--out", killed}
                              : std::vector<std::string>{"train", "--resume", killed});
    ASSERT_TRUE(wait_until([&] { return saved_step(killed) >= step; }, 60));
    program.send(SIGKILL);
    program.wait();
  }
  const ProgramResult resumed = run_program({"train", "--resume", killed});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  const size_t tests = GetParam() == "deit" ? 2 : 1;   // of averaged weights, those as trained are tested too
  EXPECT_EQ(losses(killed).size(), 16u + 4u + tests);  // steps, validations and the test
  EXPECT_EQ(losses(killed), losses(unbroken));
  expect_same_run(unbroken, killed);
}

INSTANTIATE_TEST_SUITE_P(Recipes, WithRecipe, ::testing::Values("deit", "vit", "vit_light"),
                         [](const auto& info) { return info.param; });

TEST(RecipeVerbs, ConfigShowNamesWhatCameFromTheRecipe) {
  const TemporaryFolder folder;
  const ProgramResult shown = run_program({"config", "show", folder.write("my.toml", kConfig), "--set",
                                           "train.recipe=deit", "--set", "transforms.mixup=0.2"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  const auto find_line = [&](const std::string& key) {
    const size_t begin = shown.out.find("\n" + key + " = ") + 1;
    return shown.out.substr(begin, shown.out.find('\n', begin) - begin);
  };
  EXPECT_TRUE(find_line("weight_decay").ends_with("# recipe deit")) << find_line("weight_decay");
  EXPECT_TRUE(find_line("ema_decay").ends_with("# recipe deit")) << find_line("ema_decay");
  EXPECT_TRUE(find_line("mixup").ends_with("# --set")) << find_line("mixup");
  EXPECT_TRUE(find_line("cutmix").ends_with("# recipe deit")) << find_line("cutmix");
  EXPECT_EQ(find_line("lr").substr(0, 13), "lr = 6.25e-05") << find_line("lr");  // 5e-4 * 64 / 512
  EXPECT_TRUE(find_line("epochs").find("my.toml:") != std::string::npos) << find_line("epochs");
}

// A run keeps the sizes that fit its data, so that other images are prepared alike.
TEST(RecipeVerbs, ARunKeepsWhatItsDataMadeOfTheRecipe) {
  const TemporaryFolder folder;
  const std::string run = folder.path("run");
  const ProgramResult result = run_program({"train", folder.write("my.toml", kConfig), "--set",
                                            "train.recipe=vit_light", "--set", "train.max_steps=1", "--out", run});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json config = read_checkpoint(last_checkpoint(run), CheckpointParts::kInference).config;
  EXPECT_EQ(config["train"]["recipe"], "vit_light");
  EXPECT_EQ(config["transforms"]["train"][0]["size"], 16);
  EXPECT_EQ(config["transforms"]["eval"][1]["size"], 16);
  const ProgramResult again = run_program({"eval", run});
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

}  // namespace
}  // namespace sparsight::testing::recipe_test
