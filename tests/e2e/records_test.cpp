// Records of an evaluation, the compare verb on them, and evaluations of many classes and domains.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include <ATen/ops/eq.h>

#include "sparsight/eval/records.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/safetensors.h"
#include "tests/e2e/output.h"
#include "tests/e2e/train_fixture.h"
#include "tests/support/small_disk.h"

namespace sparsight::testing::records_verb_test {
namespace {

class RecordsVerb : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const ProgramResult trained =
        run_program({"train", tiny_config(*folder_), "--set", "train.epochs=1", "--out", run(), "--quiet"});
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string run() { return folder_->path("run"); }
  static std::string at(const std::string& name) { return folder_->path(name); }
  static ProgramResult eval(const std::string& records, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"eval", run(), "--json", "--quiet", "--records", at(records)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments);
  }
  static Json result(const ProgramResult& ended) {
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    return Json::parse(ended.out, nullptr, false);
  }
  static TemporaryFolder* folder_;
};

TemporaryFolder* RecordsVerb::folder_ = nullptr;

TEST_F(RecordsVerb, AgreeWithWhatTheEvaluationCounted) {
  const Json line = result(eval("deep/counted", {"--set", "capacity.eval_factor=0.5"}));
  const Records records = read_records(at("deep/counted"));
  EXPECT_EQ(records.images(), 64);
  EXPECT_EQ(records.ids.at(0), "test/0");
  EXPECT_EQ(records.ids.at(63), "test/63");
  EXPECT_EQ(records.settings["capacity"]["eval_factor"], 0.5);
  const at::Tensor right = records.prediction.eq(records.label);
  EXPECT_DOUBLE_EQ(right.to(at::kDouble).mean().item<double>(), line["accuracy"].get<double>());
  EXPECT_TRUE(records.logits.argmax(1).eq(records.prediction).all().item<bool>());
  ASSERT_EQ(records.layers.size(), 1u);
  const Json& layer = line["layers"][0];
  EXPECT_EQ(records.layers[0].layer, layer["layer"]);
  EXPECT_GT(layer["dropped"].get<double>(), 0);
  for (int64_t e = 0; e < 4; ++e) {
    EXPECT_EQ(records.layers[0].chosen.select(1, e).sum().item<int64_t>(), layer["load"][static_cast<size_t>(e)]);
    EXPECT_EQ(records.layers[0].kept.select(1, e).sum().item<int64_t>(), layer["kept"][static_cast<size_t>(e)]);
  }
  // 17 tokens choose two experts each.
  EXPECT_TRUE(records.layers[0].chosen.sum(1).eq(34).all().item<bool>());
}

TEST_F(RecordsVerb, AreCompared) {
  const Json a = result(eval("a")), b = result(eval("b", {"--set", "router.eval_k=1"}));
  const Json compared = result(run_program({"compare", at("a"), at("b"), "--json"}));
  EXPECT_EQ(compared["images"], 64);
  EXPECT_DOUBLE_EQ(compared["a"]["accuracy"], a["accuracy"]);
  EXPECT_DOUBLE_EQ(compared["b"]["accuracy"], b["accuracy"]);
  EXPECT_NEAR(compared["difference"]["mean"], a["accuracy"].get<double>() - b["accuracy"].get<double>(), 1e-12);
  EXPECT_EQ(compared["both"].get<int>() + compared["only_a"].get<int>() + compared["only_b"].get<int>() +
                compared["neither"].get<int>(),
            64);
  const ProgramResult same = run_program({"compare", at("a"), at("a")});
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_NE(same.out.find("McNemar: p = 1.0000 (exact binomial test)\n"), std::string::npos) << same.out;
  EXPECT_NE(same.out.find("A - B: 0.00 points (95 % CI: 0.00 to 0.00)\n"), std::string::npos) << same.out;
}

TEST_F(RecordsVerb, OfRunFoldersAreFoundAndTheirRoutingIsShown) {
  const Json line = result(eval("run/records", {"--set", "capacity.eval_factor=0.5"}));
  result(eval("plain", {"--set", "router.eval_k=1"}));
  const Json compared = result(run_program({"compare", run(), at("plain"), "--json"}));
  const Json& layer = compared["a"]["routing"][0];
  for (const char* key : {"cv_load", "max_over_mean", "dropped", "mean_top_gate"})
    EXPECT_NEAR(layer[key].get<double>(), line["layers"][0][key].get<double>(), 1e-6) << key;
  EXPECT_EQ(layer["class_information"], line["layers"][0]["class_information"]);
  EXPECT_EQ(layer["k"], 2);
  EXPECT_EQ(compared["b"]["routing"][0]["k"], 1);
  const std::string text = run_program({"compare", run(), at("plain")}).out;
  EXPECT_NE(text.find("\n  A  blocks.1.mlp  softmax_topk  4        2  "), std::string::npos) << text;
  EXPECT_NE(text.find("\n  B  blocks.1.mlp  softmax_topk  4        1  "), std::string::npos) << text;
  std::filesystem::remove_all(run() + "/records");
}

TEST_F(RecordsVerb, OfOtherImagesAreNotCompared) {
  result(eval("of_test"));
  result(eval("of_validation", {"--split", "val"}));
  expect_failure(
      run_program({"compare", at("of_test"), at("of_validation")}), 1,
      "are of different images: image 0 is test/0 and validation/0; evaluate both models on the same images");
  expect_failure(run_program({"compare", at("of_test"), at("of_nothing")}), 1,
                 "holds no records; write them with sparsight eval");
  expect_failure(
      run_program({"compare", at("of_test"), run()}), 1,
      run() + " is a run folder without records; first: sparsight eval " + run() + " --records " + run() + "/records");
  const std::string tensors = at("of_validation/records.safetensors");
  write_file_atomically(tensors, read_file(tensors, 1 << 20).substr(0, 4000));
  expect_failure(run_program({"compare", at("of_test"), at("of_validation")}), 1, "it is truncated or damaged");
  expect_failure(run_program({"compare", at("of_test")}), 2, "b is required");
}

TEST_F(RecordsVerb, AreWhatTheyWereWhereAnEvaluationFails) {
  result(eval("whole"));
  const std::string index = read_file(at("whole/index.json"), 1 << 20);
  expect_failure(eval("whole", {"--set", "model.depth=3"}), 1, "no fitting weights for");
  EXPECT_EQ(read_file(at("whole/index.json"), 1 << 20), index);
  expect_failure(eval("never", {"--set", "model.depth=3"}), 1, "no fitting weights for");
  EXPECT_FALSE(std::filesystem::exists(at("never")));
  expect_failure(eval("run"), 2, "it holds ");
  expect_failure(eval("tiny.toml"), 2, "it is not a folder");
}

TEST_F(RecordsVerb, AFullDiskIsOneLine) {
  const SmallDisk disk("size=8k");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small disk needs root";
  expect_failure(run_program({"eval", run(), "--json", "--quiet", "--records", disk.folder().path("a")}), 1,
                 "No space left on device");
  EXPECT_EQ(count_entries(disk.folder()), 0u);
}

// 100 classes in 4 domains: 400 combinations of one image each.
TEST_F(RecordsVerb, ManyClassesAndDomainsAreAllCounted) {
  const ProgramResult trained = run_program(
      {"train", tiny_config(*folder_), "--set", "train.max_steps=1", "--set", "data.classes=100", "--set",
       R"(data.domains=["clean", "textured", "sketch", "inverted"])", "--set", "data.test=400", "--out", at("many")});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.out.find("(worst 5 of 400 combinations)"), std::string::npos) << trained.out;
  const Json line = result(run_program({"eval", at("many"), "--json", "--quiet"}));
  ASSERT_EQ(line["cells"].size(), 400u);
  EXPECT_EQ(line["worst_cell"], 0);
  double images = 0, correct = 0;
  for (const Json& cell : line["cells"]) {
    images += cell["images"].get<double>();
    correct += cell["images"].get<double>() * cell["accuracy"].get<double>();
  }
  EXPECT_EQ(images, 400);
  EXPECT_NEAR(correct / images, line["accuracy"], 1e-12);
  EXPECT_NE(read_file(at("many/report.html"), 1 << 26).find("(worst 50 of 400 combinations)"), std::string::npos);
}

}  // namespace
}  // namespace sparsight::testing::records_verb_test
