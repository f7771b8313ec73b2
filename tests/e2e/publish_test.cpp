// `sparsight weights publish`: the folder has the run's weights, a card with its results, and predicts as the run does.
#include <gtest/gtest.h>

#include <ATen/ops/full.h>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "sparsight/core/input_file.h"
#include "sparsight/data/hash.h"
#include "sparsight/data/readers/png_write.h"
#include "sparsight/io/metrics_log.h"
#include "sparsight/io/safetensors.h"
#include "tests/e2e/output.h"
#include "tests/e2e/train_fixture.h"

namespace sparsight::testing::publish_test {
namespace {

namespace fs = std::filesystem;

class PublishedWeights : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const ProgramResult trained = train_tiny(*folder_, run(), {"--set", "train.epochs=1"});
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    const ProgramResult made =
        run_program({"weights", "publish", run(), "--out", hub(), "--name", "tiny \"moe\"", "--license", "apache-2.0"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    folder_->write("a.png", encode_png(at::full({3, 16, 16}, 200, at::kByte)));
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string run() { return folder_->path("run"); }
  static std::string hub() { return folder_->path("hub"); }
  static std::string text(const std::string& file) { return read_file(hub() + "/" + file, 1 << 24); }

  inline static TemporaryFolder* folder_ = nullptr;
};

TEST_F(PublishedWeights, HasTheWeightsAndNoTrainingState) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(hub())) files.push_back(entry.path().filename());
  std::ranges::sort(files);
  EXPECT_EQ(files, (std::vector<std::string>{"README.md", "config.json", "config.toml", "model.safetensors"}));
  const TensorFile file = read_safetensors(hub() + "/model.safetensors");
  EXPECT_EQ(file.metadata.at("format"), "pt");
  std::set<std::string> names;
  for (const auto& [name, tensor] : file.tensors) names.insert(name);
  EXPECT_TRUE(names.contains("patch_embed.proj.weight") && names.contains("blocks.1.mlp.experts.w1"));
  for (const std::string& name : names) EXPECT_FALSE(name.starts_with("training/")) << name;
}

TEST_F(PublishedWeights, TheCardHasTheResultAndTheHash) {
  const std::string card = text("README.md");
  EXPECT_TRUE(card.starts_with("---\nlibrary_name: sparsight\n"));
  for (const std::string& part : {std::string("license: \"apache-2.0\"\n"), std::string("- mixture-of-experts\n"),
                                  std::string("name: \"tiny \\\"moe\\\"\"\n"), hash_file(hub() + "/model.safetensors")})
    EXPECT_NE(card.find(part), std::string::npos) << part << "\n" << card;
  Json result;
  std::istringstream lines(read_file(run() + "/metrics.jsonl", 1 << 24));
  for (std::string line; std::getline(lines, line);)
    if (const Json record = Json::parse(line); record["kind"] == "eval" && record["split"] == "test") result = record;
  const double accuracy = result.at("accuracy");
  char value[32];
  std::snprintf(value, sizeof value, "value: %.6f\n", accuracy);
  EXPECT_NE(card.find(value), std::string::npos) << value << card;
  const Json config = Json::parse(text("config.json"));
  EXPECT_EQ(config["architecture"], "vit");
  EXPECT_EQ(config["num_classes"], 4);
  EXPECT_EQ(config["label_names"].size(), 4U);
  EXPECT_EQ(config["input_size"], Json({3, 16, 16}));
}

TEST_F(PublishedWeights, PredictAsTheRunDoes) {
  const auto probabilities = [&](const std::vector<std::string>& model) {
    std::vector<std::string> arguments{"predict"};
    arguments.insert(arguments.end(), model.begin(), model.end());
    arguments.insert(arguments.end(), {folder_->path("a.png"), "--json"});
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::vector<double> all;
    for (const Json& guess : json_lines(result.out).at(0)["classes"]) all.push_back(guess["probability"]);
    return all;
  };
  EXPECT_EQ(probabilities({hub() + "/model.safetensors", "--config", hub() + "/config.toml"}), probabilities({run()}));
}

TEST_F(PublishedWeights, RefusesWhatItCannotDo) {
  expect_failure(run_program({"weights", "publish", run(), "--out", hub()}), 1, hub());
  expect_failure(run_program({"weights", "publish", folder_->path("none"), "--out", folder_->path("x")}), 1, "none");
  expect_failure(run_program({"weights", "publish", hub() + "/model.safetensors", "--out", folder_->path("x")}), 1,
                 "model.safetensors");
  EXPECT_FALSE(fs::exists(folder_->path("x")));
}

}  // namespace
}  // namespace sparsight::testing::publish_test
