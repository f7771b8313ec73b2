// The eval verb on a trained run: it agrees with training, settings reach the model, and bad input is an error.
#include <ATen/ops/full_like.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/options.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/metrics_log.h"
#include "sparsight/io/safetensors.h"
#include "tests/e2e/output.h"
#include "tests/e2e/train_fixture.h"

namespace sparsight::testing::eval_test {
namespace {

class EvalVerb : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const ProgramResult trained =
        run_program({"train", tiny_config(*folder_), "--set", "train.epochs=1", "--out", run(), "--quiet"});
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string run() { return folder_->path("run"); }
  static ProgramResult eval(const std::string& path, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"eval", path, "--json", "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments);
  }
  static Json result(const std::vector<std::string>& more = {}) {
    const ProgramResult evaluated = eval(run(), more);
    EXPECT_EQ(evaluated.exit_code, 0) << evaluated.err;
    return Json::parse(evaluated.out, nullptr, false);
  }
  static Json with(const std::string& assignment) { return result({"--set", assignment}); }
  static TemporaryFolder* folder_;
};

TemporaryFolder* EvalVerb::folder_ = nullptr;

double assignments(const Json& evaluation) {
  double sum = 0;
  for (const Json& load : evaluation["layers"][0]["load"]) sum += load.get<double>();
  return sum;
}

// 256 images in batches of 32: 8 steps.
TEST_F(EvalVerb, AgreesWithTheTestOfTheTraining) {
  Json line;
  for (const Json& entry : read_metrics(run() + "/metrics.jsonl"))
    if (entry["kind"] == "eval" && entry["split"] == "test") line = entry;
  const Json best = result();
  EXPECT_EQ(best["accuracy"], line["accuracy"]);
  EXPECT_NEAR(best["loss"].get<double>(), line["loss"].get<double>(), 1e-6);
  EXPECT_EQ(best["step"], 8);
  EXPECT_EQ(best["weights"], "ema");
  EXPECT_FALSE(best.contains("epoch"));
}

// The file is that of the training, up to the rounding of its program.
TEST_F(EvalVerb, WritesTheConfusedImagesOfARunAsTrained) {
  const std::string file = run() + "/confused.json", before = read_file(file, 1 << 24);
  const ProgramResult written = eval(run(), {"--confused"});
  ASSERT_EQ(written.exit_code, 0) << written.err;
  const Json one = Json::parse(before), two = Json::parse(read_file(file, 1 << 24));
  for (const char* const key : {"split", "step", "weights", "images"}) EXPECT_EQ(one[key], two[key]) << key;
  ASSERT_EQ(one["cells"].size(), two["cells"].size());
  EXPECT_GT(one["cells"].size(), 0u);
  for (size_t i = 0; i < one["cells"].size(); ++i) {
    EXPECT_EQ(one["cells"][i]["images"], two["cells"][i]["images"]);
    EXPECT_EQ(one["cells"][i]["confused"][0]["picture"].get<std::string>().substr(0, 22), "data:image/png;base64,");
  }
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--set", "router.eval_k=1"},
                                               {"--flip"},
                                               {"--corrupt", "fog"},
                                               {"--split", "val"},
                                               {"--checkpoint", "last"},
                                               {"--weights", "bf16"}}) {
    std::vector<std::string> arguments{"--confused"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(eval(run(), arguments).exit_code, 2) << more[0];
  }
  EXPECT_EQ(eval(run() + "/checkpoints/best.safetensors", {"--confused"}).exit_code, 1) << "no run folder";
}

// Routings are those of the images themselves.
TEST_F(EvalVerb, AveragesOverMirrorImages) {
  const Json alone = result(), both = result({"--flip"});
  EXPECT_FALSE(alone.contains("flip"));
  EXPECT_EQ(both["flip"], true);
  EXPECT_NE(both["loss"], alone["loss"]);
  EXPECT_EQ(both["layers"][0]["load"], alone["layers"][0]["load"]);
}

TEST_F(EvalVerb, SaysWhichWeightsItTook) {
  EXPECT_EQ(result({"--checkpoint", "last"})["weights"], "ema");
  EXPECT_EQ(result({"--checkpoint", "last"})["weights"], "ema");
  EXPECT_EQ(with("train.ema_decay=0")["weights"], "ema") << "a setting of the training says nothing of the file";
}

TEST_F(EvalVerb, SettingsReachTheModelAndItsTransforms) {
  const Json plain = result();
  EXPECT_EQ(assignments(plain), 2 * assignments(with("router.eval_k=1")));  // k = 2
  EXPECT_GT(with("capacity.eval_factor=0.1")["layers"][0]["dropped"].get<double>(), 0.5);
  for (const char* assignment :
       {"experts.activation=relu", "transforms.eval=[{op=\"flip\",probability=1}]", "data.seed=4"})
    EXPECT_NE(with(assignment)["loss"], plain["loss"]) << assignment;
}

TEST_F(EvalVerb, RefusesSettingsThatDoNotFit) {
  expect_failure(eval(run(), {"--set", "model.depth=3"}), 1,
                 "with --set model.depth=3: the file has no fitting weights for");
  expect_failure(eval(run(), {"--set", "router.eval_k=5"}), 2, "5 experts per token but [moe] experts is 4");
  expect_failure(eval(run(), {"--set", "router.evalk=1"}), 2, "did you mean");
}

TEST_F(EvalVerb, CorruptedImagesGiveErrorsByKindAndSeverity) {
  const Json found = result({"--corrupt", "contrast,gaussian_noise", "--severity", "1,5"});
  ASSERT_EQ(found["corruptions"].size(), 2u);
  EXPECT_DOUBLE_EQ(found["clean_error"].get<double>(), 1 - result()["accuracy"].get<double>());
  EXPECT_TRUE(found["mce"].is_null());
  double sum = 0;
  for (const Json& corruption : found["corruptions"])
    for (size_t i = 0; i < 2; ++i) {
      const std::string kind = corruption["corruption"];
      const std::string step = cat("{op='corrupt', kind='", kind, "', severity=", i == 0 ? 1 : 5, "}");
      const Json alone = with(cat("transforms.eval=[", step, ", {op='normalize', mean=[0.5], std=[0.5]}]"));
      EXPECT_DOUBLE_EQ(corruption["errors"][i].get<double>(), 1 - alone["accuracy"].get<double>()) << step;
      sum += corruption["errors"][i].get<double>();
    }
  EXPECT_DOUBLE_EQ(found["mean_error"].get<double>(), sum / 4);
  EXPECT_EQ(result({"--corrupt", "contrast,gaussian_noise", "--severity", "1,5"}), found);
  const ProgramResult table = run_program({"eval", "--corrupt", "fog", "--severity", "3", run(), "--quiet"});
  EXPECT_NE(table.out.find("mean corruption error"), std::string::npos) << table.out;
}

TEST_F(EvalVerb, RefusesCorruptionsThatDoNotExist) {
  expect_failure(eval(run(), {"--corrupt", "fogg"}), 2, "did you mean \"fog\"");
  expect_failure(eval(run(), {"--corrupt", "fog", "--severity", "6"}), 2, "a severity must be 1 to 5, got 6");
  expect_failure(eval(run(), {"--corrupt", "fog", "--records", folder_->path("records")}), 2, "leave out --records");
  expect_failure(eval(run(), {"--severity", "3"}), 2, "--corrupt");
  expect_failure(eval(run(), {"--corrupt", "fog,fog"}), 2, "the corruption fog is named twice; give each once");
  expect_failure(eval(run(), {"--corrupt", "fog", "--severity", "1,1"}), 2,
                 "the severity 1 is named twice; give each once");
  expect_failure(eval(run(), {"--corrupt", "all,fog"}), 2, "--corrupt takes all alone");
}

TEST_F(EvalVerb, RefusesDamagedWeights) {
  const std::string bad = folder_->path("bad.safetensors");
  TensorFile file = read_safetensors(run() + "/checkpoints/best.safetensors");
  const auto bias = std::find_if(file.tensors.begin(), file.tensors.end(),
                                 [](const auto& entry) { return entry.first == "head.bias"; });
  ASSERT_NE(bias, file.tensors.end());
  bias->second = at::tensor({3e38f, -3e38f, -3e38f, -3e38f});  // finite, their differences are not
  write_safetensors(bad, file);
  expect_failure(eval(bad), 1, "on the test split is not finite; the checkpoint is damaged");
  bias->second = at::full_like(bias->second, std::numeric_limits<double>::quiet_NaN());
  write_safetensors(bad, file);
  expect_failure(eval(bad), 1, "tensor head.bias holds NaN or infinity; the file is damaged");
}

TEST_F(EvalVerb, SaysWhatAPathIsThatIsNoRun) {
  expect_failure(eval(folder_->path("tiny.toml")), 2, "tiny.toml is a configuration");
  folder_->write("emptied/config.toml", read_file(run() + "/config.toml", 1 << 20));
  expect_failure(eval(folder_->path("emptied")), 1, "has no checkpoint yet; train longer");
  folder_->write("emptied/done", "");
  expect_failure(eval(folder_->path("emptied")), 1, "has no checkpoint; it is finished, so the file was removed");
}

}  // namespace
}  // namespace sparsight::testing::eval_test
