// Algorithms of every kind in the Trainer: their state, random numbers and metrics.
#include "sparsight/train/algorithm.h"

#include <cmath>
#include <sstream>

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "sparsight/core/config.h"
#include "sparsight/infer/evaluate_run.h"
#include "sparsight/infer/loaded_model.h"
#include "sparsight/io/metrics_log.h"
#include "sparsight/train/run_config.h"
#include "sparsight/train/train_run.h"
#include "sparsight/train/trained_predictor.h"
#include "tests/e2e/train_fixture.h"
#include "tests/support/errors.h"
#include "tests/train/teacher_algorithm.h"

namespace sparsight::algorithm_test {
namespace {

// Ten steps on two domains with a checkpoint after every fourth.
Json config(const std::vector<std::string>& more) {
  testing::register_teacher();
  Config config = Config::from_text(testing::kTinyConfig, "test");
  for (const char* setting :
       {"data.domains=[\"clean\",\"sketch\"]", "loader.batch=16", "train.max_steps=10", "train.ema_decay=0",
        "train.checkpoint_every=4", "train.eval_every=5", "train.log_every=2"})
    config.set(setting);
  for (const std::string& setting : more) config.set(setting);
  return resolve(config, config_sections());
}

std::vector<std::string> teacher(std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"algorithm.name=teacher", "loader.per_domain=true"});
  return more;
}

// Trains to the end; a run that dies at step `fail_at` is resumed by a program that does not.
std::string run(const testing::TemporaryFolder& folder, const std::string& name,
                const std::vector<std::string>& settings, bool dies = false) {
  std::ostringstream out;
  const std::string path = folder.path(name);
  const auto start = [&] { start_training(config(settings), path, /*overwrite=*/false, out); };
  if (!dies) {
    start();
    return path;
  }
  EXPECT_EQ(testing::error_text(start), "killed");
  std::string text = read_file(path + "/config.toml", 1 << 20);
  const std::string fails = "fail_at = 7";
  text.replace(text.find(fails), fails.size(), "fail_at = -1");
  write_file_atomically(path + "/config.toml", text);
  resume_training(path, {.allow_changed_config = true}, out);
  return path;
}

Checkpoint last(const std::string& run) { return read_checkpoint(run + "/checkpoints/last.safetensors"); }

std::vector<Json> lines(const std::string& run, const std::string& kind) {
  std::vector<Json> found;
  for (Json line : read_metrics(run + "/metrics.jsonl"))
    if (line["kind"] == kind) {
      for (const char* measured : {"seconds", "images_per_s", "peak_memory_mb", "training"}) line.erase(measured);
      found.push_back(line);
    }
  return found;
}

bool same_tensors(const NamedTensors& a, const NamedTensors& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].first != b[i].first || !at::equal(a[i].second, b[i].second)) return false;
  return true;
}

TEST(Algorithm, WithStateOfItsOwnIsResumedWithTheSameBits) {
  const testing::TemporaryFolder folder;
  const std::string whole = run(folder, "whole", teacher());
  const std::string broken = run(folder, "broken", teacher({"algorithm.fail_at=7"}), /*dies=*/true);
  const Checkpoint expected = last(whole), got = last(broken);
  EXPECT_TRUE(same_tensors(got.weights, expected.weights));
  EXPECT_TRUE(same_tensors(got.training, expected.training));
  EXPECT_EQ(got.state["algorithm"], expected.state["algorithm"]);
  EXPECT_EQ(got.state["algorithm"]["updates"], 10);
  for (const char* kind : {"train", "eval"}) EXPECT_EQ(lines(broken, kind), lines(whole, kind));
  EXPECT_EQ(tensors_under("teacher/", got.training).size(), got.weights.size());

  // Without its saved numbers the bits differ: the test above can fail.
  const std::string forgetful =
      run(folder, "forgetful", teacher({"algorithm.fail_at=7", "algorithm.forgetful=true"}), /*dies=*/true);
  EXPECT_FALSE(same_tensors(last(forgetful).weights, expected.weights));
}

TEST(Algorithm, ItsMetricsAreAveragedAndWrittenByName) {
  const testing::TemporaryFolder folder;
  const std::vector<Json> train = lines(run(folder, "run", teacher()), "train");
  ASSERT_EQ(train.size(), 5u);
  for (const Json& line : train) {
    EXPECT_GT(line["task"].get<double>(), 0);
    EXPECT_GE(line["parts"]["consistency"].get<double>(), 0);
    EXPECT_EQ(line["domains"], (Json{0, 1}));  // a batch of each
    EXPECT_EQ(line["updates"], line["step"]);
    EXPECT_FALSE(line.contains("loss"));
  }
}

TEST(Algorithm, PredictsInEvaluationsAlsoOfACheckpoint) {
  const testing::TemporaryFolder folder;
  const std::string path = run(folder, "run", teacher());
  // Validation used the teacher, whose weights are not those of the model.
  const std::vector<Json> evaluations = lines(path, "eval");
  ASSERT_FALSE(evaluations.empty());
  EvaluateRunOptions options;
  options.path = path;
  options.checkpoint = "last";
  options.split = "val";
  EXPECT_NE(evaluate_run(options)["loss"], evaluations[1]["loss"]);
  EXPECT_EQ(evaluate_run(options, trained_predictor)["loss"], evaluations[1]["loss"]);
  EXPECT_EQ(load_model(path).weights, "model");
}

TEST(Erm, TakesTheWeightsMeanFromAStepOn) {
  const testing::TemporaryFolder folder;
  const std::string path = run(folder, "run", {"train.swa_start=6", "train.keep=last"});
  EXPECT_EQ(load_model(path, "best").weights, "swa");
  EXPECT_EQ(load_model(path, "last").weights, "swa");
  EXPECT_EQ(lines(path, "eval").front()["weights"], "swa");
  // The same steps without averaging end with the same weights, and the mean over step 6 alone is that step's weights.
  const std::string plain = run(folder, "plain", {});
  EXPECT_TRUE(same_tensors(last(path).weights, last(plain).weights));
  const std::string late = run(folder, "late", {"train.swa_start=10"});
  EXPECT_TRUE(same_tensors(tensors_under(kAverageTensors, last(late).training), last(plain).weights));
  EXPECT_FALSE(same_tensors(tensors_under(kAverageTensors, last(path).training), last(plain).weights));
  EXPECT_NE(testing::error_text<UsageError>([&] {
              run(folder, "both", {"train.swa_start=6", "train.ema_decay=0.9"});
            }).find("both average the weights"),
            std::string::npos);
}

TEST(Erm, LearnsFromABatchOfEachDomain) {
  const testing::TemporaryFolder folder;
  const std::vector<Json> train = lines(run(folder, "run", {"loader.per_domain=true", "train.max_steps=4"}), "train");
  ASSERT_EQ(train.size(), 2u);
  EXPECT_TRUE(std::isfinite(train[1]["loss"].get<double>()));
}

TEST(Erm, FollowsParameterGroups) {
  const testing::TemporaryFolder folder;
  const std::string groups = "train.param_groups=[{parameters = [\"head\"], lr_factor = 0}]";
  const Checkpoint early = last(run(folder, "early", {groups, "train.max_steps=2"}));
  const Checkpoint late = last(run(folder, "late", {groups, "train.max_steps=4"}));
  const auto moved = [&](const std::string& name) {
    return !at::equal(tensors_under(name, early.weights).at(0).second, tensors_under(name, late.weights).at(0).second);
  };
  EXPECT_FALSE(moved("head.weight"));
  EXPECT_TRUE(moved("blocks.0.attn.qkv.weight"));
}

TEST(Algorithms, AnUnknownNameIsAnswered) {
  EXPECT_NE(testing::error_text<UsageError>([] { config({"algorithm.name=emr"}); }).find("did you mean \"erm\"?"),
            std::string::npos);
}

}  // namespace
// Router logits of about 1e23, whose square is not finite in fp32: the z-loss alone is infinite.
TEST(Erm, NamesTheAuxiliaryLossThatIsNotFinite) {
  const testing::TemporaryFolder folder;
  Checkpoint checkpoint = last(run(folder, "first", {"train.max_steps=1"}));
  for (auto& [name, tensor] : checkpoint.weights)
    if (name.ends_with("router.weight")) tensor.mul_(1e25);
  write_checkpoint(folder.path("large.safetensors"), checkpoint);
  EXPECT_EQ(
      testing::error_text([&] {
        run(folder, "second",
            {"losses.router_z=0.001", "train.init_from=\"" + folder.path("large.safetensors") + "\""});
      }),
      "the auxiliary loss router_z is not finite at step 1. The task loss is finite: check the auxiliary loss, or "
      "train without it (weight 0), or continue with --on-nan skip");
}

}  // namespace sparsight::algorithm_test
