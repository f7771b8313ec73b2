// Images with several labels through the program: train, eval, records, attack, explain, predict; their numbers agree.
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/softplus.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/data/readers/png_write.h"
#include "sparsight/eval/records.h"
#include "sparsight/io/atomic_file.h"
#include "tests/e2e/output.h"
#include "tests/support/program.h"

namespace sparsight::testing::multi_label_test {
namespace {

// 2 x 2 glyphs of four classes, each with the labels of all that it shows.
constexpr const char* kConfig = R"(
[run]
seed = 3
threads = 1

[data]
name = "composite"
cells = "glyphs"
digits = [0, 1, 2, 3]
grid = 2
cell_side = 8
multi_label = true
train = 256
validation = 64
test = 64

[transforms]
train = [{op = "normalize", mean = [0.5], std = [0.5]}]
eval = [{op = "normalize", mean = [0.5], std = [0.5]}]

[loader]
batch = 32
workers = 1

[model]
name = "vit"
size = "custom"
width = 32
depth = 2
heads = 2
patch = 4

[moe]
blocks = [-1]
experts = 4

[train]
epochs = 10
log_every = 8

[optimizer]
name = "adamw"
lr = 0.005
)";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

double share(const at::Tensor& flags) { return flags.to(at::kDouble).mean().item<double>(); }

// The mean over images of the sum over classes of softplus(z) - t z.
double sigmoid_loss(const Records& records) {
  const at::Tensor z = records.logits.to(at::kDouble), t = records.label_sets.to(at::kDouble);
  return (at::softplus(z, 1, 100) - t * z).sum(1).mean().item<double>();
}

class MultiLabel : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    folder_->write("config.toml", kConfig);
    trained_ = new ProgramResult(run_program({"train", at("config.toml"), "--out", at("run"), "--quiet"}));
    ASSERT_EQ(trained_->exit_code, 0) << trained_->err;
  }
  static void TearDownTestSuite() {
    delete trained_;
    delete folder_;
  }
  static std::string at(const std::string& name) { return folder_->path(name); }
  static ProgramResult attack(std::vector<std::string> more) {
    more.insert(more.begin(), {"attack", at("run"), "--quiet", "--eps", "8/255"});
    return run_program(more);
  }
  static Json output_json(const ProgramResult& ended) {
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    return Json::parse(ended.out, nullptr, false);
  }
  inline static TemporaryFolder* folder_ = nullptr;
  inline static ProgramResult* trained_ = nullptr;
};

}  // namespace

TEST_F(MultiLabel, A34_TrainingShowsPrecisionAtOneAndNoAccuracy) {
  EXPECT_TRUE(has(trained_->out, "precision@1")) << trained_->out;
  EXPECT_TRUE(has(trained_->out, "FDR@1")) << trained_->out;
  EXPECT_FALSE(has(trained_->out, "accuracy")) << trained_->out;
  double first_loss = 0, last_loss = 0;
  for (const Json& line : json_lines(read_file(at("run/metrics.jsonl"), size_t{1} << 24))) {
    EXPECT_FALSE(line.contains("accuracy") || line.contains("cells") || line.contains("confusions")) << line;
    if (line["kind"] == "train") {
      EXPECT_TRUE(line.contains("precision_at_1")) << line;
      (first_loss == 0 ? first_loss : last_loss) = line["task_loss"];
    }
    if (line["kind"] != "eval") continue;
    EXPECT_DOUBLE_EQ(line["fdr_at_1"], 1 - line["precision_at_1"].get<double>());
    EXPECT_FALSE(line.contains("class_expert"));
    for (const Json& layer : line["layers"]) EXPECT_FALSE(layer.contains("class_information"));
  }
  EXPECT_LT(last_loss, first_loss);
  EXPECT_TRUE(has(read_file(at("run/report.html"), size_t{1} << 26), "test precision@1"));
}

TEST_F(MultiLabel, A34_EvaluationAgreesWithItsRecords) {
  const Json result = output_json(run_program({"eval", at("run"), "--json", "--quiet", "--records", at("records")}));
  const Records records = read_records(at("records"));
  ASSERT_TRUE(records.multi_label());
  EXPECT_NEAR(result["precision_at_1"], share(records.correct()), 1e-12);
  EXPECT_NEAR(result["loss"], sigmoid_loss(records), 1e-5);
  const ProgramResult text = run_program({"eval", at("run"), "--quiet"});
  EXPECT_TRUE(has(text.out, "precision@1") && has(text.out, "FDR@1") && !has(text.out, "accuracy")) << text.out;
  const ProgramResult compared = run_program({"compare", at("records"), at("records")});
  EXPECT_TRUE(has(compared.out, "precision@1")) << compared.out << compared.err;
}

TEST_F(MultiLabel, A34_AttacksCountImagesWhoseTopClassIsAmongTheirLabels) {
  const Json result =
      output_json(attack({"--attack", "pgd", "--set", "attack.steps=10", "--json", "--out", at("pgd")}));
  const Records before = read_records(at("pgd/clean_records")), after = read_records(at("pgd/records"));
  const int64_t clean = before.correct().sum().item<int64_t>(), attacked = after.correct().sum().item<int64_t>();
  EXPECT_EQ(result["stages"][0]["settings"]["loss"], "sigmoid_cross_entropy");
  EXPECT_EQ(result["clean_accuracy"]["count"], clean);
  EXPECT_EQ(result["accuracy_after"]["count"], attacked);
  EXPECT_EQ(result["robust_accuracy"]["count"], (before.correct() & after.correct()).sum().item<int64_t>());
  EXPECT_EQ(result["fdr_at_1"]["clean"]["count"], 64 - clean);
  EXPECT_EQ(result["fdr_at_1"]["attacked"]["count"], 64 - attacked);
  EXPECT_NEAR(result["loss"]["clean"], sigmoid_loss(before), 1e-5);
  EXPECT_NEAR(result["loss"]["attacked"], sigmoid_loss(after), 1e-5);
  EXPECT_GT(sigmoid_loss(after), sigmoid_loss(before));
  EXPECT_LT(attacked, clean);
  const Json evaluated = output_json(run_program({"eval", at("run"), "--json", "--quiet"}));
  EXPECT_DOUBLE_EQ(result["clean_accuracy"]["value"], evaluated["precision_at_1"]);
  // The finished attack is printed again: a name for its rates, Wilson intervals, FDR@1.
  const ProgramResult text = attack({"--attack", "pgd", "--set", "attack.steps=10", "--out", at("pgd")});
  EXPECT_TRUE(has(text.out, "clean precision@1 ") && has(text.out, "robust precision@1 ")) << text.out;
  EXPECT_TRUE(has(text.out, "FDR@1 clean ") && has(text.out, "95 % CI") && has(text.out, "sigmoid cross entropy"));
  EXPECT_FALSE(has(text.out, "accuracy")) << text.out;
  EXPECT_TRUE(has(read_file(at("pgd/images.csv"), size_t{1} << 20), ";"));  // labels such as 0;3
}

TEST_F(MultiLabel, AttacksWithoutGradientsAndCurvesWork) {
  const Json square = output_json(
      attack({"--attack", "square", "--set", "attack.queries=20", "--images", "16", "--json", "--out", at("square")}));
  EXPECT_LE(square["robust_accuracy"]["count"], square["clean_accuracy"]["count"]);
  const ProgramResult curve = run_program({"attack", at("run"), "--quiet", "--attack", "fgsm", "--eps", "0,16/255",
                                           "--images", "16", "--out", at("curve")});
  EXPECT_EQ(curve.exit_code, 0) << curve.err;
  EXPECT_TRUE(has(read_file(at("curve/curve.html"), size_t{1} << 26), "Robust precision@1"));
}

TEST_F(MultiLabel, WhatNeedsOneLabelPerImageSaysSo) {
  const std::string none = at("none");
  expect_failure(attack({"--out", none}), 2, "autoattack is for images with one label");
  expect_failure(attack({"--attack", "fab_t", "--out", none}), 2, "use --attack fgsm or");
  expect_failure(attack({"--attack", "pgd", "--set", "attack.loss=dlr", "--out", none}), 2, "attack.loss = dlr");
  const auto train = [&](const std::string& setting) {
    return run_program({"train", at("config.toml"), "--quiet", "--out", none, "--set", setting});
  };
  expect_failure(train("algorithm.name=trades"), 2, "images of composite of glyphs have several labels");
  expect_failure(train("loader.sampling=class_balanced"), 2, "needs one label per image");
  expect_failure(run_program({"data", "make", none, "--from", "composite", "--set", "cells=glyphs", "--set",
                              "multi_label=true", "--set", "digits=[0,1]"}),
                 2, "needs one label per image");
}

// A manifest of two domains: an algorithm of domain generalisation refuses it, erm trains on it.
TEST_F(MultiLabel, ManifestsOfSeveralDomainsAreForErm) {
  std::string rows = "path,labels,domain,split\n";
  for (int i = 0; i < 16; ++i) {
    const std::string name = "pictures/" + std::to_string(i) + ".png";
    folder_->write(name, encode_png(at::full({1, 16, 16}, 15 * i, at::kByte)));
    rows += std::to_string(i) + ".png," +
            (i % 3 == 0   ? "cat;dog"
             : i % 3 == 1 ? "dog"
                          : "cat") +
            "," + (i % 2 == 0 ? "photo" : "sketch") + "," + (i < 12 ? "train" : "test") + "\n";
  }
  folder_->write("pictures/manifest.csv", rows);
  std::string config = kConfig;
  const size_t begin = config.find("[data]"), end = config.find("[transforms]");
  config.replace(begin, end - begin,
                 "[data]\nname = \"manifest\"\nchannels = 1\nvalidation = 0\nroot = \"" + at("pictures") + "\"\n");
  config.replace(config.find("batch = 32"), 10, "per_domain = true\nbatch = 4");
  folder_->write("domains.toml", config);
  const auto train = [&](const std::string& algorithm) {
    return run_program({"train", at("domains.toml"), "--quiet", "--out", at("run_" + algorithm), "--set",
                        "train.epochs=1", "--set", "algorithm.name=" + algorithm});
  };
  expect_failure(train("coral"), 2, "have several labels; use algorithm.name = \"erm\"");
  const ProgramResult trained = train("erm");
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_TRUE(has(trained.out, "precision@1")) << trained.out;
}

TEST_F(MultiLabel, OtherLossesAndAdversarialTraining) {
  const auto loss_after = [&](const std::string& out, const std::vector<std::string>& settings) {
    std::vector<std::string> arguments{"train", at("config.toml"), "--quiet",       "--out",
                                       at(out), "--set",           "train.epochs=1"};
    for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
    const ProgramResult trained = run_program(arguments);
    EXPECT_EQ(trained.exit_code, 0) << trained.err;
    return output_json(run_program({"eval", at(out), "--json", "--quiet"}))["loss"].get<double>();
  };
  // With logits near 0 after one epoch: ln 4 = 1.39 of a softmax over four classes, 4 ln 2 = 2.77 of four sigmoids.
  EXPECT_NEAR(loss_after("softmax", {"train.task_loss=cross_entropy"}), std::log(4), 0.4);
  EXPECT_NEAR(loss_after("sigmoid", {}), 4 * std::log(2), 0.6);
  EXPECT_GT(loss_after("pgd_training", {"algorithm.name=pgd_training", "algorithm.steps=2"}), 1.5);
}

TEST_F(MultiLabel, PredictionsAreProbabilitiesOfEachClassAndExplainGoesByPrediction) {
  const std::string image = folder_->write("grey.png", encode_png(at::full({1, 16, 16}, 100, at::kByte)));
  const Json predicted = output_json(run_program({"predict", at("run"), image, "--json", "--quiet", "--top", "4"}));
  double sum = 0;
  for (const Json& entry : predicted["classes"]) sum += entry["probability"].get<double>();
  EXPECT_GT(std::abs(sum - 1), 1e-3);  // of a softmax it would be 1
  const ProgramResult explained = run_program({"explain", at("run"), "--quiet"});
  EXPECT_EQ(explained.exit_code, 0) << explained.err;
  EXPECT_TRUE(has(explained.out, "predicted class") && !has(explained.out, "accuracy")) << explained.out;
}

}  // namespace sparsight::testing::multi_label_test
