// The verb dg sweep as a user runs it: what is retried, refused and told apart, and results that algorithms end with.
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "tests/e2e/dg_verb.h"
#include "tests/e2e/saved_run.h"

namespace sparsight::testing::dg_verb_test {

// A run that failed is done by the same command once its cause is gone: here a file with the name of its run folder.
TEST_F(DgVerb, AFailedRunOfASweepIsRetried) {
  namespace fs = std::filesystem;
  const std::string sweep = std::string("sweep --trials 1 --hparams 1 --no-pairs") + kSmall;
  const std::string out = at("retried");
  ASSERT_EQ(dg(sweep, {"--out", out}).exit_code, 0);
  const fs::path job = *fs::directory_iterator(out + "/jobs");
  fs::remove_all(job);
  const TemporaryFolder elsewhere;
  fs::create_directories(job);
  write_file_atomically((job / "run").string(), "in the way");
  const ProgramResult failed = dg(sweep, {"--out", out});
  EXPECT_EQ(failed.exit_code, 1) << failed.err;
  EXPECT_NE(failed.err.find("1 run failed"), std::string::npos) << failed.err;
  EXPECT_NE(failed.err.find("run the same command to retry"), std::string::npos) << failed.err;
  fs::remove(job / "run");
  const ProgramResult retried = dg(sweep, {"--out", out});
  EXPECT_EQ(retried.exit_code, 0) << retried.err;
  EXPECT_TRUE(fs::exists(job / "result.json"));
}

// SWAD ends with an average that no evaluation during the training has seen.
TEST_F(DgVerb, TheAverageThatAnAlgorithmEndsWithIsWhatCounts) {
  const ProgramResult ended =
      dg(std::string("train --algorithm swad --test-envs 1 --set optimizer.lr=0.01") + kSmall, {"--out", at("swad")});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const std::vector<Json> lines = results(at("swad"));
  for (size_t i = 0; i + 1 < lines.size(); ++i) EXPECT_FALSE(lines[i].contains("result_weights"));
  const Json& last = lines.back();
  EXPECT_EQ(last.at("result_weights"), "swad");
  EXPECT_EQ(last.at("step"), lines[lines.size() - 2].at("step"));
  // The same weights as those of the best checkpoint.
  std::istringstream metrics(read_file(at("swad") + "/metrics.jsonl", size_t{1} << 24));
  double in = 0, images = 0;
  for (std::string line; std::getline(metrics, line);)
    if (const Json json = Json::parse(line); json.value("split", "") == "test")
      for (const Json& cell : json.at("cells"))
        if (cell.at("domain").get<std::string>().ends_with("/in")) {
          in += cell.at("accuracy").get<double>() * cell.at("images").get<double>();
          images += cell.at("images").get<double>();
        }
  EXPECT_NEAR(last.at("env1_in_acc").get<double>(), in / images, 1e-9);
  const ProgramResult table = run_program({"dg", "table", at("swad"), "--format", "csv"});
  double cell = 0;
  std::istringstream text(table.out);
  for (std::string line; std::getline(text, line);)
    if (line.find("training-domain validation") != std::string::npos && line.ends_with(",0")) {
      std::istringstream fields(line);
      std::string field;
      for (int f = 0; f < 5; ++f) std::getline(fields, field, ',');
      cell = std::stod(field);
      break;
    }
  EXPECT_NEAR(cell, 100 * in / images, 0.01) << table.out;
}

// Its loss is the mean over the updates since the last evaluation, however short the run is; what it trained with is
// what the lines say.
TEST_F(DgVerb, LinesSayTheLossAndTheSettingsOfTheRun) {
  const ProgramResult ended =
      dg(std::string("train --test-envs 1 --set optimizer.lr=0.01 --set train.log_every=1") + kSmall,
         {"--out", at("lines")});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  std::vector<double> losses;  // of every update
  std::istringstream metrics(read_file(at("lines") + "/metrics.jsonl", size_t{1} << 24));
  for (std::string line; std::getline(metrics, line);)
    if (const Json json = Json::parse(line); json.at("kind") == "train") losses.push_back(json.at("loss"));
  ASSERT_EQ(losses.size(), 6u);
  const std::vector<Json> lines = results(at("lines"));
  EXPECT_NEAR(lines[0].at("loss").get<double>(), losses[0], 1e-9);
  EXPECT_NEAR(lines[1].at("loss").get<double>(), (losses[1] + losses[2]) / 2, 1e-9);
  EXPECT_NEAR(lines[3].at("loss").get<double>(), losses[5], 1e-9);
  EXPECT_EQ(lines[0].at("hparams").at("lr"), 0.01);
  EXPECT_EQ(lines[0].at("hparams").at("batch_size"), 8);
  const Json& args = lines[0].at("args");
  EXPECT_EQ(args.at("algorithm"), "ERM");
  EXPECT_EQ(args.at("settings").at("optimizer.lr"), 0.01);
  EXPECT_EQ(args.at("settings").at("image_size"), 16);
  EXPECT_EQ(args.at("data").get<std::string>().size(), 16u);
  EXPECT_EQ(args.at("environments").size(), 4u);
}

// What a run is of has options of its own; a task is wrong before a folder is made for it.
TEST_F(DgVerb, RefusesWhatWouldBeReportedWrongly) {
  const auto refused = [&](const std::string& text, const std::vector<std::string>& more, const std::string& says) {
    std::vector<std::string> arguments = more;
    arguments.insert(arguments.end(), {"--out", at("refused")});
    const ProgramResult result = dg(text + kSmall, arguments);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_NE(result.err.find(says), std::string::npos) << result.err;
    EXPECT_FALSE(std::filesystem::exists(at("refused"))) << says;
  };
  refused("train", {"--set", "algorithm.name=irm"}, "--set algorithm.name=irm: dg has --algorithm for it");
  refused("train", {"--set", "data.name=cifar10"}, "--set data.name=cifar10: dg has --dataset for it");
  refused("train", {"--test-envs", ""}, "test-envs");
  refused("train", {"--trial=-1"}, "--trial");
  refused("sweep --trials 1 --hparams 1", {"--task", "5/3"}, "a task must be INDEX/COUNT with 0 <= INDEX < COUNT");
  refused("sweep --algorithms erm,irm,erm", {}, "the algorithm erm is named twice");
  refused("sweep --trials 1000000000", {}, "jobs, and at most 1000000 can be run in one folder");
  refused("ablate --set model.size=tiny --only none --vary router.k=1", {"--test-envs", ""}, "test-envs");
}

TEST_F(DgVerb, AFolderHoldsRunsOfOneKind) {
  const std::string sweep = std::string("sweep --trials 1 --hparams 1 --no-pairs") + kSmall;
  ASSERT_EQ(dg(sweep, {"--out", at("one")}).exit_code, 0);
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--set", "optimizer.lr=0.01"}, {"--data", at("elsewhere")}}) {
    std::vector<std::string> arguments = more;
    if (more[0] == "--data") {
      std::filesystem::copy(domains(), at("elsewhere"), std::filesystem::copy_options::recursive);
      for (const auto& entry : std::filesystem::recursive_directory_iterator(at("elsewhere")))
        if (entry.is_regular_file() && std::filesystem::remove(entry.path())) break;  // other data: an image is missing
    }
    arguments.insert(arguments.end(), {"--out", at("one")});
    std::string changed = sweep;
    if (more[0] == "--data") changed.erase(changed.find("--data DOMAINS"), std::string("--data DOMAINS").size());
    const ProgramResult refused = dg(changed, arguments);
    EXPECT_EQ(refused.exit_code, 1) << refused.err;
    EXPECT_NE(refused.err.find("choose another folder with --out"), std::string::npos) << refused.err;
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
  }
  EXPECT_EQ(dg(sweep, {"--algorithms", "erm,irm", "--out", at("one")}).exit_code, 0) << "more of the same kind";
}

// Data are what they hold: the path of their folder may be written in any way, and they may have moved.
TEST_F(DgVerb, TheSameDataElsewhereAreTheSameSweep) {
  namespace fs = std::filesystem;
  const std::string sweep = std::string("sweep --trials 1 --hparams 1 --no-pairs") + kSmall, out = at("moved");
  ASSERT_EQ(dg(sweep, {"--out", out}).exit_code, 0);
  const auto jobs = [&] { return std::distance(fs::directory_iterator(out + "/jobs"), fs::directory_iterator()); };
  ASSERT_EQ(jobs(), 4);
  fs::copy(domains(), at("copied"), fs::copy_options::recursive);
  for (const std::string& folder : {at("copied"), domains() + "/../domains/", at("./domains")}) {
    std::string other = sweep;
    other.replace(other.find("DOMAINS"), std::string("DOMAINS").size(), folder);
    const ProgramResult again = dg(other, {"--out", out});
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_EQ(jobs(), 4) << folder;
  }
}

// Both runs miss a class of images in the same way, and say it once; each says what it is where it begins.
TEST_F(DgVerb, ASweepNamesItsRunsAndWarnsOnce) {
  namespace fs = std::filesystem;
  const std::string folder = at("uneven");
  fs::copy(domains(), folder, fs::copy_options::recursive);
  for (const auto& domain : fs::directory_iterator(folder)) fs::create_directories(domain.path() / "nothing");
  const auto an_image = [](const fs::path& below) {
    for (const auto& entry : fs::recursive_directory_iterator(below))
      if (entry.is_regular_file()) return entry.path();
    return fs::path();
  };
  for (const auto& domain : fs::directory_iterator(folder))
    fs::copy_file(an_image(domain.path()), domain.path() / "nothing" / "only.png");
  std::string sweep = std::string("sweep --trials 1 --hparams 1 --no-pairs") + kSmall;
  sweep.replace(sweep.find("DOMAINS"), std::string("DOMAINS").size(), folder);
  std::vector<std::string> command_words = words(sweep);
  command_words.insert(command_words.end(), {"--out", at("named")});
  ProgramOptions options;
  options.timeout_seconds = 300;
  const ProgramResult done = run_program(command_words, options);
  ASSERT_EQ(done.exit_code, 0) << done.err;
  for (int e = 0; e < 4; ++e)
    EXPECT_NE(done.err.find(
                  cat("dg folder: erm (vit) on folder, test environment ", e, ", trial 0, hyper-parameter seed 0\n")),
              std::string::npos)
        << done.err;
  std::set<std::string> warnings;
  std::istringstream lines(done.err);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("warning: ")) {
      EXPECT_TRUE(warnings.insert(line).second) << line;
    }
}

// `train --resume` has no part in the protocol: the command itself goes on.
TEST_F(DgVerb, AnInterruptedRunSaysHowToGoOn) {
  std::string train = std::string("train --test-envs 1 --set train.checkpoint_every=2") + kSmall;
  train.replace(train.find("--steps 6"), 9, "--steps 100000");
  std::vector<std::string> command_words = words(train);
  command_words.insert(command_words.end(), {"--out", at("interrupted"), "--quiet"});
  Program program(command_words);
  ASSERT_TRUE(wait_until([&] { return saved_step(at("interrupted")) >= 2; }));
  program.send(SIGINT);
  const ProgramResult result = program.wait();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("; run the same command again to continue"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("--resume"), std::string::npos) << result.err;
}

// Two folders, one of them with another learning rate: rows of their own, the same from the file that is written.
TEST_F(DgVerb, CollectsResultsOfSeveralFolders) {
  const std::string sweep = std::string("sweep --trials 1 --hparams 1 --no-pairs") + kSmall;
  ASSERT_EQ(dg(sweep, {"--out", at("first")}).exit_code, 0);
  ASSERT_EQ(dg(sweep, {"--set", "optimizer.lr=0.01", "--out", at("second")}).exit_code, 0);
  const std::string file = at("all.jsonl");
  const ProgramResult collected =
      run_program({"dg", "collect", at("first"), at("second"), "--out", file, "--format", "csv", "--quiet"});
  ASSERT_EQ(collected.exit_code, 0) << collected.err;
  EXPECT_NE(collected.out.find("\"ERM (vit, optimizer.lr=0.01)\",Avg,"), std::string::npos) << collected.out;
  EXPECT_EQ(run_program({"dg", "table", file, "--format", "csv"}).out, collected.out);
  const ProgramResult again = run_program({"dg", "collect", at("first"), file, "--out", file});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.err.find("is left out: it is the run of"), std::string::npos) << again.err;
  write_file_atomically(at("notes.txt"), "notes\n");
  const ProgramResult refused = run_program({"dg", "collect", at("first"), "--out", at("notes.txt"), "--quiet"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("holds no results of runs; choose another file with --out"), std::string::npos);
}

}  // namespace sparsight::testing::dg_verb_test
