// Sparse upcycling through the program: a dense run, then a run with an MoE layer that starts from it.
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "sparsight/io/checkpoint.h"
#include "sparsight/io/metrics_log.h"
#include "sparsight/io/safetensors.h"
#include "tests/e2e/train_fixture.h"

namespace sparsight::testing::upcycle_test {
namespace {

ProgramResult train(const TemporaryFolder& folder, const std::string& run, std::vector<std::string> more) {
  std::vector<std::string> arguments{"train", tiny_config(folder), "--out", folder.path(run),
                                     "--set", "train.ema_decay=0"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program(arguments);
}

Json last_evaluation(const TemporaryFolder& folder, const std::string& run) {
  Json found;
  for (const Json& line : read_metrics(folder.path(run) + "/metrics.jsonl"))
    if (line["kind"] == "eval" && line["split"] == "val") found = line;
  return found;
}

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

}  // namespace

TEST(Upcycling, AnMoeRunStartsWhereADenseRunEnded) {
  const TemporaryFolder folder;
  const ProgramResult dense = train(folder, "dense", {"--set", "moe.blocks=[]"});
  ASSERT_EQ(dense.exit_code, 0) << dense.err;
  const Json before = last_evaluation(folder, "dense");
  // A learning rate of 0: what is evaluated is the start.
  for (const char* choice : {"router.k=1", "router.k=2"}) {
    SCOPED_TRACE(choice);
    const ProgramResult sparse = train(folder, "sparse",
                                       {"--init-from", folder.path("dense") + "/checkpoints/last.safetensors", "--set",
                                        choice, "--set", "optimizer.lr=0", "--set", "train.epochs=1", "--overwrite"});
    ASSERT_EQ(sparse.exit_code, 0) << sparse.err;
    EXPECT_SAYS(sparse.err, "4 adapted, 1 kept fresh, 0 unused");
    EXPECT_SAYS(sparse.err, "blocks.1.mlp.experts.w1 (upcycled: 4 copies of blocks.1.mlp.fc1.weight)");
    EXPECT_SAYS(sparse.err, "kept fresh: blocks.1.mlp.router.weight");
    EXPECT_SAYS(sparse.err, "upcycled and dense model: equal predictions for 100.0 % of 64 images, logits differ by");
    const Json after = last_evaluation(folder, "sparse");
    EXPECT_EQ(after["accuracy"], before["accuracy"]);
    EXPECT_NEAR(after["loss"].get<double>(), before["loss"].get<double>(), 1e-5);
    // The run keeps the choice: its checkpoint evaluates alike.
    const ProgramResult again = run_program({"eval", folder.path("sparse"), "--split", "val", "--json"});
    ASSERT_EQ(again.exit_code, 0) << again.err;
    EXPECT_NEAR(Json::parse(again.out)["loss"].get<double>(), before["loss"].get<double>(), 1e-5);
  }
}

TEST(Upcycling, GatesOfTheRouterAreAnOption) {
  const TemporaryFolder folder;
  ASSERT_EQ(train(folder, "dense", {"--set", "moe.blocks=[]"}).exit_code, 0);
  const std::string weights = folder.path("dense") + "/checkpoints/last.safetensors";
  ASSERT_EQ(train(folder, "sparse",
                  {"--init-from", weights, "--set", "moe.gates=\"router\"", "--set", "optimizer.lr=0", "--set",
                   "train.epochs=1"})
                .exit_code,
            0);
  EXPECT_GT(std::abs(last_evaluation(folder, "sparse")["loss"].get<double>() -
                     last_evaluation(folder, "dense")["loss"].get<double>()),
            1e-4);
}

TEST(Upcycling, WeightsThatDoNotFitAreAnErrorThatNamesThem) {
  const TemporaryFolder folder;
  ASSERT_EQ(train(folder, "dense", {"--set", "moe.blocks=[]", "--set", "train.max_steps=1"}).exit_code, 0);
  TensorFile file = read_safetensors(folder.path("dense") + "/checkpoints/last.safetensors");
  file.metadata.clear();
  std::erase_if(file.tensors, [](const auto& entry) {
    return is_training_name(entry.first) || entry.first == "blocks.0.norm1.bias";
  });
  for (auto& [name, tensor] : file.tensors)
    if (name == "pos_embed") tensor = at::zeros({1, 7, 32});
  file.tensors.emplace_back("blocks.0.ls1.gamma", at::ones({32}));
  file.tensors.emplace_back("norm_pre.weight", at::ones({32}));
  const std::string weights = folder.path("weights.safetensors");
  write_safetensors(weights, file);
  const std::vector<std::string> more{"--init-from", weights, "--set", "train.max_steps=1", "--quiet"};
  const ProgramResult refused = train(folder, "sparse", more);
  EXPECT_EQ(refused.exit_code, 1);
  std::vector<std::string> lenient = more;
  lenient.push_back("--allow-missing");
  const ProgramResult allowed = train(folder, "sparse", lenient);
  EXPECT_EQ(allowed.exit_code, 0) << allowed.err;
  for (const std::string& text : {refused.err, allowed.err})
    for (const char* part : {"blocks.0.ls1.gamma (not in the model)", "norm_pre.weight (not in the model)",
                             "blocks.0.norm1.bias (not in the file)", "pos_embed ([1, 7, 32] in the file"})
      EXPECT_SAYS(text, part);
  EXPECT_SAYS(refused.err, "--allow-missing");
}

TEST(Upcycling, NoiseLetsExpertsDiffer) {
  const TemporaryFolder folder;
  ASSERT_EQ(train(folder, "dense", {"--set", "moe.blocks=[]", "--set", "train.epochs=1"}).exit_code, 0);
  const ProgramResult sparse =
      train(folder, "sparse",
            {"--init-from", folder.path("dense") + "/checkpoints/last.safetensors", "--set", "train.upcycle_noise=0.01",
             "--set", "optimizer.lr=0", "--set", "train.epochs=1"});
  ASSERT_EQ(sparse.exit_code, 0) << sparse.err;
  EXPECT_SAYS(sparse.err, "with noise");
  for (const auto& [name, tensor] : read_checkpoint(folder.path("sparse") + "/checkpoints/last.safetensors").weights)
    if (name == "blocks.1.mlp.experts.w1") {
      EXPECT_FALSE(at::equal(tensor[0], tensor[1]));
    }
}

}  // namespace sparsight::testing::upcycle_test
