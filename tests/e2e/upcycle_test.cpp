// Sparse upcycling through the program: a dense run, then a run with an MoE layer that starts from it.
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "sparsight/io/checkpoint.h"
#include "sparsight/io/metrics_log.h"
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
  // A learning rate of 0: what is evaluated is the start. Renormalised gates make equal experts act as the MLP.
  const ProgramResult sparse = train(folder, "sparse",
                                     {"--init-from", folder.path("dense") + "/checkpoints/last.safetensors", "--set",
                                      "router.renormalize=true", "--set", "optimizer.lr=0", "--set", "train.epochs=1"});
  ASSERT_EQ(sparse.exit_code, 0) << sparse.err;
  EXPECT_SAYS(sparse.err, "4 adapted, 1 kept fresh, 0 unused");
  EXPECT_SAYS(sparse.err, "blocks.1.mlp.experts.w1 (upcycled: 4 copies of blocks.1.mlp.fc1.weight)");
  EXPECT_SAYS(sparse.err, "kept fresh: blocks.1.mlp.router.weight");
  const Json before = last_evaluation(folder, "dense"), after = last_evaluation(folder, "sparse");
  EXPECT_EQ(after["accuracy"], before["accuracy"]);
  EXPECT_NEAR(after["loss"].get<double>(), before["loss"].get<double>(), 1e-4);
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
