// The verb sweep as a user runs it: table, files, what is trained once only, successive halving, and wrong arguments.
#include <gtest/gtest.h>

#include <filesystem>

#include "sparsight/core/error.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/checked_json.h"
#include "tests/support/program.h"

namespace sparsight::testing::sweep_verb_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = R"(
[run]
threads = 1
[data]
name = "glyphs"
classes = 3
side = 16
train = 64
validation = 32
test = 32
[loader]
batch = 32
workers = 1
[model]
width = 16
depth = 1
heads = 2
[moe]
blocks = [0]
experts = 4
[train]
epochs = 2
)";

class SweepVerb : public ::testing::Test {
 protected:
  ProgramResult sweep(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"sweep", config_, "--quiet"});
    return run_program(arguments);
  }
  std::string out() const { return folder_.path("out"); }
  int64_t jobs() const {
    const fs::path path = out() + "/jobs";
    return fs::exists(path) ? std::distance(fs::directory_iterator(path), fs::directory_iterator()) : 0;
  }
  Json found() const { return parse_checked_object(read_file(out() + "/sweep.json", size_t{1} << 24), "sweep.json"); }

  TemporaryFolder folder_;
  std::string config_ = folder_.write("small.toml", kConfig);
};

}  // namespace

TEST_F(SweepVerb, TrainsEverySettingWithEverySeedOnce) {
  const std::vector<std::string> arguments{"--grid", "router.k=1,2", "--seeds", "2", "--out", out()};
  const ProgramResult first = sweep(arguments);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(jobs(), 4);
  const Json json = found();
  ASSERT_EQ(json["settings"].size(), 2u);
  for (const Json& setting : json["settings"]) {
    ASSERT_EQ(setting["trials"].size(), 2u);
    for (const Json& trial : setting["trials"]) {
      const std::string run = out() + "/" + trial["run"].get<std::string>();
      const std::string written = read_file(run + "/config.toml", size_t{1} << 20);
      EXPECT_NE(written.find(cat("k = ", setting["settings"]["router.k"].get<int64_t>(), "\n")), std::string::npos);
      EXPECT_NE(written.find(cat("seed = ", trial["seed"].get<int64_t>(), "\n")), std::string::npos);
      EXPECT_TRUE(trial["validation"].is_number());
      EXPECT_TRUE(trial["test"].is_number());
    }
  }
  EXPECT_GE(json["settings"][0]["validation"]["mean"], json["settings"][1]["validation"]["mean"]);
  const std::string best = json["settings"][0]["settings"]["router.k"].dump();
  EXPECT_NE(first.out.find("best: router.k=" + best + "\n"), std::string::npos) << first.out;
  EXPECT_NE(first.out.find("sparsight train " + config_ + " --set 'router.k=" + best + "'"), std::string::npos);
  EXPECT_NE(read_file(out() + "/sweep.html", size_t{1} << 24).find("Validation accuracy by setting"),
            std::string::npos);

  // A larger grid trains what is new alone.
  const auto made = fs::last_write_time(out() + "/" + json["settings"][0]["trials"][0]["run"].get<std::string>());
  const ProgramResult more = sweep({"--grid", "router.k=1,2,3", "--seeds", "2", "--out", out()});
  ASSERT_EQ(more.exit_code, 0) << more.err;
  EXPECT_EQ(jobs(), 6);
  EXPECT_EQ(fs::last_write_time(out() + "/" + json["settings"][0]["trials"][0]["run"].get<std::string>()), made);
}

TEST_F(SweepVerb, HalvingTrainsTheBestForLonger) {
  const ProgramResult halved =
      sweep({"--grid", "optimizer.lr=log(1e-4,1e-2)", "--random", "4", "--halving", "2", "--out", out()});
  ASSERT_EQ(halved.exit_code, 0) << halved.err;
  EXPECT_EQ(jobs(), 6);  // four for one epoch, two of them for two
  EXPECT_EQ(found()["settings"].size(), 2u);
  EXPECT_NE(read_file(out() + "/sweep.html", size_t{1} << 24).find("4 settings, 1 epochs"), std::string::npos);
}

TEST_F(SweepVerb, SeveralProcessesHaveTheResultsOfOne) {
  const std::vector<std::string> arguments{"--grid", "router.k=1,2", "--format", "json", "--out"};
  const auto into = [&](const std::string& folder, std::vector<std::string> more) {
    std::vector<std::string> all = arguments;
    all.push_back(folder);
    all.insert(all.end(), more.begin(), more.end());
    const ProgramResult result = sweep(all);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    Json json = Json::parse(result.out);
    for (Json& setting : json["settings"])
      for (Json& trial : setting["trials"]) trial.erase("seconds");
    return json;
  };
  EXPECT_EQ(into(out(), {}), into(folder_.path("other"), {"--processes", "2"}));
}

TEST_F(SweepVerb, PlansAndSaysWhatIsWrong) {
  const ProgramResult plan = sweep({"--grid", "router.k=1,2", "--seeds", "5", "--plan", "--out", out()});
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_NE(plan.out.find("10 jobs"), std::string::npos) << plan.out;
  EXPECT_FALSE(fs::exists(out()));
  const auto refused = [&](std::vector<std::string> arguments, const std::string& message) {
    const ProgramResult result = sweep(std::move(arguments));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
    EXPECT_FALSE(fs::exists(out()));
  };
  refused({"--grid", "router.kk=1,2", "--out", out()}, "unknown setting router.kk");
  refused({"--grid", "router.k=0,1", "--out", out()}, "router.k must be");
  refused({"--grid", "router.k=integers(1,2)", "--out", out()}, "--random N");
  refused({"--out", out()}, "--grid is required");
  refused({"--grid", "run.seed=1,2", "--out", out()}, "with --seeds");
  refused({"--grid", "optimizer.lr=1e-3,0.001", "--out", out()}, "optimizer.lr=0.001 is the same training as");
  refused({"--grid", "router.k=1,2", "--seeds", "2", "--set", "run.seed=9223372036854775807", "--out", out()},
          "beyond the largest run.seed");
  refused({"--grid", "train.epochs=1,2", "--halving", "2", "--out", out()}, "leave train.epochs out of --grid");
  refused({"--grid", "router.k=1,2", "--halving", "2", "--slurm", "x.sh", "--out", out()}, "leave it out with --slurm");
}

// With data.validation = 0 what is called "val" is the test split.
TEST_F(SweepVerb, ChoosesNothingByTestImages) {
  const std::string images = folder_.path("images");
  ASSERT_EQ(run_program({"data", "make", images, "--layout", "class", "--set", "side=16", "--set", "classes=3", "--set",
                         "train=64", "--set", "validation=3", "--set", "test=12", "--quiet"})
                .exit_code,
            0);
  fs::remove_all(images + "/val");
  const std::vector<std::string> arguments{"--grid", "router.k=1,2",
                                           "--set",  "data.name=folder",
                                           "--set",  "data.root=" + images,
                                           "--set",  "data.validation=0",
                                           "--out",  out()};
  const ProgramResult found_none = sweep(arguments);
  ASSERT_EQ(found_none.exit_code, 0) << found_none.err;
  EXPECT_NE(found_none.out.find("no setting is chosen"), std::string::npos) << found_none.out;
  const Json setting = found()["settings"][0];
  EXPECT_TRUE(setting["validation"].is_null());
  EXPECT_TRUE(setting["test"]["mean"].is_number());
  std::vector<std::string> halved = arguments;
  halved.insert(halved.end(), {"--halving", "2", "--set", "train.epochs=2"});
  EXPECT_NE(sweep(halved).err.find("set data.validation above 0"), std::string::npos);
}

TEST_F(SweepVerb, AnArrayOfTasksRunsEachJobOnce) {
  const std::string script = folder_.path("sweep.sh");
  const ProgramResult written = sweep({"--grid", "router.k=1,2", "--slurm", script, "--out", out()});
  ASSERT_EQ(written.exit_code, 0) << written.err;
  EXPECT_NE(read_file(script, size_t{1} << 20).find("--grid=router.k=1,2"), std::string::npos);
  for (const char* task : {"0/2", "1/2"})
    EXPECT_EQ(sweep({"--grid", "router.k=1,2", "--task", task, "--out", out()}).exit_code, 0);
  EXPECT_EQ(jobs(), 2);
  const ProgramResult table = sweep({"--grid", "router.k=1,2", "--out", out()});
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_EQ(found()["settings"].size(), 2u);
}

}  // namespace sparsight::testing::sweep_verb_test
