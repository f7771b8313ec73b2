// The verb prune, and the verbs that take what it wrote like a run.
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "sparsight/infer/prune_run.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/checkpoint.h"
#include "tests/e2e/output.h"
#include "tests/e2e/train_fixture.h"
#include "tests/support/errors.h"

namespace sparsight::testing::prune_test {
namespace {

const char* const kLayer = "blocks.1.mlp";

at::Tensor find_tensor(const NamedTensors& tensors, const std::string& name) {
  for (const auto& [key, tensor] : tensors)
    if (key == name) return tensor;
  return {};
}

// A run with one expert per token, whose expert 2 has the row of expert 0 in the router: of equal logits the lower
// index is chosen, so that no token ever chooses expert 2.
class PruneVerb : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const ProgramResult trained =
        run_program({"train", tiny_config(*folder_), "--set", "train.epochs=1", "--set", "moe.blocks=[0,1]", "--set",
                     "router.name=softmax_topk", "--set", "router.k=1", "--set", "router.renormalize=true", "--out",
                     run(), "--quiet"});
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    for (const char* const name : {"best", "last"}) {
      const std::string file = cat(run(), "/checkpoints/", name, ".safetensors");
      const Checkpoint checkpoint = read_checkpoint(file);
      for (const NamedTensors* const tensors : {&checkpoint.weights, &checkpoint.training})
        for (const auto& [key, tensor] : *tensors)
          if (key.ends_with("blocks.1.mlp.router.weight")) tensor.select(0, 2).copy_(tensor.select(0, 0));
      write_checkpoint(file, checkpoint);
    }
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string run() { return folder_->path("run"); }
  static Json output_json(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out, nullptr, false);
  }
  static const Json& layer(const Json& result, const std::string& name) {
    for (const Json& each : result["layers"])
      if (each["layer"] == name) return each;
    ADD_FAILURE() << "no layer " << name;
    return result;
  }
  static TemporaryFolder* folder_;
};

TemporaryFolder* PruneVerb::folder_ = nullptr;

TEST_F(PruneVerb, WithoutAnUnusedExpertTheAnswersStay) {
  const std::string out = folder_->path("unused");
  const Json result = output_json({"prune", run(), "--experts", cat(kLayer, ":2"), "--out", out});
  EXPECT_EQ(result["split"], "val");
  EXPECT_EQ(result["images"], 64);
  EXPECT_EQ(layer(result, kLayer)["router"], "softmax_topk");
  const Json& experts = layer(result, kLayer)["experts"];
  ASSERT_EQ(experts.size(), 4U);
  EXPECT_EQ(experts[2]["load"], 0);
  EXPECT_TRUE(experts[2]["into"].is_null());
  EXPECT_EQ(experts[3]["into"], 2);  // its number in the pruned layer
  double load = 0;
  for (const Json& expert : experts) load += expert["load"].get<double>();
  EXPECT_EQ(load, 64 * 17);  // 64 images of 16 patches and a class token, one expert each
  EXPECT_EQ(result["exact"], true);
  EXPECT_EQ(result["agreement"], 1);
  EXPECT_LT(result["largest_difference"].get<double>(), 1e-4);
  EXPECT_EQ(result["accuracy_before"], result["accuracy_after"]);
  // By hand: width 32, hidden 128: 32 * 128 + 128 + 128 * 32 + 32 = 8352 of the expert, and 32 of the router.
  EXPECT_EQ(result["parameters_before"].get<int64_t>() - result["parameters_after"].get<int64_t>(), 8352 + 32);
  EXPECT_EQ(result["bytes_before"].get<int64_t>() - result["bytes_after"].get<int64_t>(), 4 * (8352 + 32));
  const Json eval = output_json({"eval", out, "--split", "val"}), full = output_json({"eval", run(), "--split", "val"});
  EXPECT_EQ(eval["accuracy"], full["accuracy"]);
  EXPECT_EQ(eval["layers"][1]["experts"], 3);
  EXPECT_EQ(eval["layers"][0]["experts"], 4);
}

TEST_F(PruneVerb, UnusedFindsIt) {
  const Json result = output_json({"prune", run(), "--unused"});
  EXPECT_TRUE(layer(result, kLayer)["experts"][2]["into"].is_null());
  for (const Json& each : result["layers"])
    for (const Json& expert : each["experts"])
      EXPECT_EQ(expert["into"].is_null(), expert["load"] == 0) << each["layer"] << expert;
  EXPECT_EQ(result["exact"], true);
  EXPECT_EQ(result["agreement"], 1);
  EXPECT_TRUE(result["out"].is_null());
}

// All verbs that take runs take the pruned one; its training can go on, with the optimiser of the run.
TEST_F(PruneVerb, WritesARunThatTheOtherVerbsTake) {
  const std::string out = folder_->path("four_verbs"), best = out + "/checkpoints/best.safetensors";
  ASSERT_EQ(run_program({"prune", run(), "--keep", "3", "--out", out}).exit_code, 0);
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"explain", out, "--images", "16"},
           {"export", out, "--out", folder_->path("pruned.sparsight")},
           {"report", out},
           {"train", "--resume", out, "--set", "train.epochs=+1", "--quiet"},
           {"train", out + "/config.toml", "--init-from", best, "--out", folder_->path("tuned"), "--quiet"},
           {"prune", out, "--keep", "2", "--out", folder_->path("twice")}}) {
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments[0] << ": " << result.err;
  }
  const Checkpoint last = read_checkpoint(out + "/checkpoints/last.safetensors");
  EXPECT_EQ(find_tensor(last.weights, "blocks.1.mlp.experts.w1").size(0), 3);
  EXPECT_EQ(find_tensor(last.training, "optimizer/blocks.1.mlp.experts.w1/exp_avg").size(0), 3);
  EXPECT_EQ(find_tensor(last.training, "ema/blocks.1.mlp.router.weight").size(0), 3);
  EXPECT_EQ(last.config["moe"]["experts"], 3);
  const Json env = Json::parse(read_file(out + "/env.json", 1 << 20));
  EXPECT_EQ(env["pruned"]["layers"].size(), 2U);
}

TEST_F(PruneVerb, MergesInsteadOfRemoving) {
  const Json result = output_json({"prune", run(), "--keep", "2", "--merge", "--out", folder_->path("merged")});
  for (const Json& each : result["layers"])
    for (const Json& expert : each["experts"]) EXPECT_FALSE(expert["into"].is_null()) << expert;
  EXPECT_EQ(result["parameters_before"].get<int64_t>() - result["parameters_after"].get<int64_t>(),
            4 * (8352 + 32));  // two experts of two layers
  const Json eval = output_json({"eval", folder_->path("merged"), "--split", "val"});
  EXPECT_EQ(eval["accuracy"], result["accuracy_after"]);
}

TEST_F(PruneVerb, MeasuresEachExpertByItself) {
  const Json result = output_json({"prune", run(), "--keep", "3", "--by", "damage", "--images", "16"});
  EXPECT_EQ(result["images"], 16);
  for (const Json& each : result["layers"])
    for (const Json& expert : each["experts"]) EXPECT_TRUE(expert["without"]["loss"].is_number()) << expert;
  const Json& experts = layer(result, kLayer)["experts"];
  EXPECT_NEAR(experts[2]["without"]["accuracy"].get<double>(), result["accuracy_before"].get<double>(), 1e-12);
  const ProgramResult text = run_program({"prune", run(), "--unused", "--each", "--images", "16"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  for (const char* const part : {"blocks.1.mlp: ", " of 4 experts stay", "accuracy without it", "removed",
                                 "stay, up to rounding", "parameters: ", "nothing was written; --out DIR"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
}

TEST_F(PruneVerb, RefusesWhatItCannotDo) {
  const auto refused = [](std::vector<std::string> arguments, int exit_code, const std::string& part) {
    arguments.insert(arguments.begin(), {"prune", "--quiet"});
    expect_failure(run_program(arguments), exit_code, part);
  };
  refused({run()}, 2, "prune needs one rule");
  refused({run(), "--unused", "--keep", "2"}, 2, "got 2");
  refused({run(), "--unused", "--by", "damage"}, 2, "give --keep N");
  refused({run(), "--keep", "0"}, 2, "--keep");
  refused({run(), "--below", "nan"}, 2, "--below");
  refused({run(), "--unused", "--max-drop", "nan"}, 2, "--max-drop");
  refused({run(), "--below", "1"}, 2, "leave at least one");
  refused({run(), "--experts", "blocks.7.mlp:0"}, 2, "blocks.7.mlp");
  refused({run(), "--experts", "blocks.1.mlp:4"}, 2, "has experts 0 to 3, got 4");
  refused({run(), "--experts", "blocks.1.mlp:0,,1"}, 2, "got nothing");
  refused({run(), "--experts", "blocks.1.mlp:-1"}, 2, "got -1");
  refused({run(), "--experts", "blocks.1.mlp:99999999999999999999"}, 2, "has experts 0 to 3");
  refused({run(), "--experts", "blocks.1.mlp"}, 2, "LAYER:E");
  refused({run(), "--experts", "blocks.1.mlp:0,1,2,3"}, 2, "all 4 experts of blocks.1.mlp");
  refused({run(), "--keep", "3", "--set", "router.k=2"}, 2, "--set takes settings of [data], [run] and [loader]");
  refused({run(), "--keep", "3", "--out", run()}, 1, "exists already");
  refused({folder_->path("nothing"), "--unused"}, 1, "nothing");
}

TEST_F(PruneVerb, RefusesModelsWithoutExpertsToRemove) {
  const auto trained = [&](const std::string& name, const std::vector<std::string>& settings) {
    std::vector<std::string> arguments{"train", tiny_config(*folder_), "--set", "train.epochs=1", "--quiet"};
    for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
    arguments.insert(arguments.end(), {"--out", folder_->path(name)});
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return folder_->path(name);
  };
  expect_failure(run_program({"prune", trained("dense", {"moe.blocks=[]"}), "--unused"}), 1, "is a dense model");
  expect_failure(run_program({"prune", trained("hash", {"router.name=hash"}), "--unused"}), 1, "its router hash");
  const std::string two = trained("two", {"router.k=2"});
  expect_failure(run_program({"prune", two, "--keep", "1", "--quiet"}), 2, "blocks.1.mlp: 1 of 4");
  const std::string frozen = folder_->path("frozen.sparsight");
  ASSERT_EQ(run_program({"export", two, "--no-compare", "--out", frozen}).exit_code, 0);
  expect_failure(run_program({"prune", frozen, "--unused"}), 1, "is a frozen model");
}

TEST_F(PruneVerb, WritesNothingWhereTheAccuracyDropsTooMuch) {
  PruneRequest request;
  request.path = run(), request.out = folder_->path("dropped"), request.keep = 3;
  request.max_drop = -101;  // the accuracy would have to rise by more than all
  EXPECT_NE(error_text([&] { prune_run(request); }).find("more than --max-drop -101; nothing was written"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(request.out));
}

}  // namespace
}  // namespace sparsight::testing::prune_test
