// The verb dg: speed and memory of runs, augmentation, missing data, and that a small model learns.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sparsight/data/domainbed/domainbed.h"
#include "tests/e2e/dg_verb.h"

namespace sparsight::testing::dg_verb_test {

// Every update takes 8 images of each of three environments. Memory of the whole run never falls, and has that of its
// evaluations.
TEST_F(DgVerb, G56_ARunSaysItsSpeedAndMemory) {
  const ProgramResult ended = dg(std::string("train --test-envs 1") + kSmall, {"--out", at("timed")});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  double peak = 0;
  for (const Json& line : results(at("timed"))) {
    EXPECT_NEAR(line.at("step_time").get<double>() * line.at("images_per_s").get<double>(), 24, 1e-6) << line;
    EXPECT_GT(line.at("step_time").get<double>(), 0);
    EXPECT_GT(line.at("eval_images_per_s").get<double>(), 0);
    EXPECT_GT(line.at("eval_mem_gb").get<double>(), 0.01);
    EXPECT_GE(line.at("mem_gb").get<double>(), line.at("eval_mem_gb").get<double>());
    EXPECT_GE(line.at("mem_gb").get<double>(), peak);
    peak = line.at("mem_gb").get<double>();
  }
  EXPECT_LT(peak, 16);
  EXPECT_NE(ended.out.find(" s per step ("), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find(" images/s), evaluation "), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find(" images/s, peak memory "), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find(" GB in evaluation)\n"), std::string::npos) << ended.out;
  const ProgramResult table = run_program({"dg", "table", at("timed")});
  EXPECT_NE(table.out.find("folder, time and memory, means over runs"), std::string::npos) << table.out;
  EXPECT_NE(
      table.out.find("| s per step | images/s | evaluation images/s | peak GB | evaluation peak GB | parameters |"),
      std::string::npos)
      << table.out;
}

// A process that only evaluates: images per second, and its own memory.
TEST_F(DgVerb, G56_InferenceHasSpeedAndMemoryToo) {
  ASSERT_EQ(dg(std::string("train --test-envs 1") + kSmall, {"--out", at("evaluated")}).exit_code, 0);
  const ProgramResult json = run_program({"eval", at("evaluated"), "--json", "--quiet"});
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const Json line = Json::parse(json.out);
  EXPECT_NEAR(line.at("images_per_s").get<double>() * line.at("seconds").get<double>(), line.at("images").get<double>(),
              1e-6);
  EXPECT_GT(line.at("peak_memory_mb").get<double>(), 10);
  const ProgramResult text = run_program({"eval", at("evaluated"), "--quiet"});
  EXPECT_NE(text.out.find(" images/s, peak memory "), std::string::npos) << text.out;
}

// The same weights are evaluated: the images of the test environment are the same with and without, those of the others
// are not, so that the loss on their "out" images differs.
TEST_F(DgVerb, G39_TrainingEnvironmentsAreAugmentedWhereTheyValidateUnlessThatIsOff) {
  const auto last_loss = [](const std::string& run) {
    const std::string metrics = read_file(run + "/metrics.jsonl", size_t{1} << 24);
    const size_t begin = metrics.find(R"({"kind":"eval","split":"val")");
    return Json::parse(metrics.substr(begin, metrics.find('\n', begin) - begin)).at("loss").get<double>();
  };
  const std::string train = std::string("train --test-envs 1") + kSmall;
  ASSERT_EQ(dg(train, {"--out", at("augmented")}).exit_code, 0);
  ASSERT_EQ(dg(train, {"--out", at("resized"), "--set", "transforms.val_augment=false"}).exit_code, 0);
  const std::vector<Json> augmented = results(at("augmented")), resized = results(at("resized"));
  for (size_t i = 0; i < augmented.size(); ++i)
    for (const char* key : {"env1_in_acc", "env1_out_acc", "loss"}) EXPECT_EQ(augmented[i].at(key), resized[i].at(key));
  EXPECT_GT(std::abs(last_loss(at("augmented")) - last_loss(at("resized"))), 1e-6);
}

// Three domains of generated shapes train, the fourth is tested. Three classes: chance is a third.
TEST_F(DgVerb, G49_ASmallMoeVitLearnsShapesTheSameWayEachTime) {
  const ProgramResult made =
      run_program({"data", "make", at("shapes"), "--layout", "domain", "--set", "side=16", "--set", "classes=3",
                   "--set", "train=720", "--set", "validation=24", "--set", "test=24", "--quiet"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const std::string train =
      "train --test-envs 3 --dataset folder --model vit --image-size 16 --set model.size=custom --set model.width=32 "
      "--set model.depth=2 --set model.heads=2 --set model.patch=4 --set loader.batch=16 --set moe.blocks=[1] --set "
      "moe.experts=3 --set router.name=cosine --set router.k=1 --set optimizer.lr=0.003 --steps 200 --eval-every 200 "
      "--set transforms.train=[{op=\"normalize\",preset=\"imagenet\"}]";
  for (const char* run : {"learned", "again"})
    ASSERT_EQ(dg(train, {"--data", at("shapes"), "--out", at(run), "--set", "run.threads=1"}).exit_code, 0);
  EXPECT_EQ(without_times(results(at("learned"))), without_times(results(at("again"))));
  const Json line = results(at("learned")).back();
  double accuracy = 0;
  for (int e = 0; e < 3; ++e) accuracy += line.at(cat("env", e, "_out_acc")).get<double>() / 3;
  EXPECT_GT(accuracy, 0.55) << line;
}

// Whatever is listed or planned works without its data; to train is one line that names the folder.
TEST_F(DgVerb, G42_DataThatAreMissingAreOneLine) {
  ProgramOptions options;
  const TemporaryFolder nothing;
  options.environment = {{"SPARSIGHT_DATA", nothing.path()}};
  for (const std::string& set : domainbed_names()) {
    if (set == "folder") continue;
    const ProgramResult plan = run_program({"dg", "sweep", "--dataset", set, "--plan"}, options);
    EXPECT_EQ(plan.exit_code, 0) << plan.err;
    EXPECT_NE(plan.out.find(" jobs, 0 done"), std::string::npos) << plan.out;
  }
  EXPECT_EQ(run_program({"data", "list"}, options).exit_code, 0);
  for (const char* set : {"rotated_mnist", "pacs", "wilds_camelyon"}) {
    const ProgramResult refused =
        run_program({"dg", "train", "--dataset", set, "--out", nothing.path("run"), "--quiet"}, options);
    EXPECT_EQ(refused.exit_code, 1) << set;
    EXPECT_NE(refused.err.find("are missing: there is no " + nothing.path()), std::string::npos) << refused.err;
    const bool fetched = refused.err.find("run `sparsight data fetch mnist`") != std::string::npos;
    EXPECT_TRUE(fetched || refused.err.find("; obtain them from http") != std::string::npos) << refused.err;
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
  }
}

}  // namespace sparsight::testing::dg_verb_test
