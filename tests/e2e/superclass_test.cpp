// `sparsight superclass` as a user runs it, on dense runs of seconds.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/analysis/superclasses/map_file.h"
#include "sparsight/core/error.h"
#include "sparsight/core/input_file.h"
#include "sparsight/core/options.h"
#include "sparsight/data/readers/npy.h"
#include "sparsight/data/readers/npy_write.h"
#include "sparsight/data/readers/png_write.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/metrics_log.h"
#include "sparsight/ops/random_fill.h"
#include "tests/e2e/saved_run.h"
#include "tests/e2e/train_fixture.h"

namespace sparsight::testing::superclass_test {
namespace {

namespace fs = std::filesystem;
using Map = std::vector<int64_t>;

ProgramResult superclass(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"superclass", "--quiet"});
  return run_program(arguments, {.timeout_seconds = 300});
}

std::vector<std::string> with(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// One line that has `words`, an exit code of 1 or 2, and nothing printed.
::testing::AssertionResult is_refused(const ProgramResult& result, const std::string& words) {
  const bool one_line = std::ranges::count(result.err, '\n') == 1;
  if ((result.exit_code == 1 || result.exit_code == 2) && one_line && result.out.empty() &&
      result.err.find(words) != std::string::npos)
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "exit code " << result.exit_code << ": " << result.out << result.err;
}

// 4 classes of 12 noisy pictures, in class/image.png or in split/class/image.png. Classes 0 and 1 look alike, as do 2
// and 3. number: of the picture, which decides its pixels.
void write_picture(const TemporaryFolder& folder, const std::string& place, int label, int number) {
  const at::Tensor noise = normal_like(at::full({1}, 0.f), {1, 16, 16}, RandomStream(number, "test.picture"));
  const at::Tensor pixels = noise.mul(25).add((label < 2 ? 60 : 190) + 4 * (label % 2)).clamp(0, 255).to(at::kByte);
  folder.write(cat(place, "/class", label, "/", number, ".png"), encode_png(pixels));
}

std::string config_of_pictures(const TemporaryFolder& folder, const std::string& place, const std::string& more = "") {
  std::string config = kTinyConfig;
  const size_t start = config.find("[data]");
  config.replace(start, config.find("[transforms]") - start,
                 cat("[data]\nname = \"folder\"\nchannels = 1\nroot = \"", folder.path(place), "\"\n", more, "\n"));
  return folder.write("pictures.toml", config);
}

const std::vector<std::string> kDense = {"--set", "moe.blocks=[]", "--set", "train.epochs=1", "--quiet"};

ProgramResult train_dense(const std::string& config, const std::string& run,
                          const std::vector<std::string>& more = {}) {
  return run_program(with(with({"train", config, "--out", run}, kDense), more));
}

// A dense run on glyphs, which has validation images of its own.
class SuperclassVerb : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder();
    trained_ = train_dense(tiny_config(*folder_), run()).exit_code;
  }
  static void TearDownTestSuite() { delete folder_; }
  void SetUp() override { ASSERT_EQ(trained_, 0); }

  static std::string run() { return folder_->path("dense"); }
  static std::string path(const std::string& name) { return folder_->path(name); }
  // A counts file of two pairs of confused classes.
  static std::string counts() {
    return folder_->write(
        "counts.npy", encode_npy(at::tensor({9, 5, 1, 0, 4, 9, 0, 1, 0, 1, 9, 6, 1, 0, 7, 9}, at::kLong).view({4, 4})));
  }

  static TemporaryFolder* folder_;
  static int trained_;
};

TemporaryFolder* SuperclassVerb::folder_ = nullptr;
int SuperclassVerb::trained_ = -1;

TEST_F(SuperclassVerb, M22_M46_WritesCountsPicturesReportAndMap) {
  const ProgramResult result = superclass({run(), "--experts", "2", "--out", path("map.txt"), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string files = run() + "/superclasses/";
  for (const char* name : {"confusion.npy", "confusion.png", "graph.svg", "report.txt", "superclasses.json", "map.txt"})
    EXPECT_TRUE(fs::exists(files + name)) << name;
  const at::Tensor counted = read_npy(files + "confusion.npy");
  EXPECT_EQ(counted.scalar_type(), at::kLong);
  EXPECT_TRUE(at::equal(counted.sum(1), at::full({4}, 16, at::kLong))) << "64 validation images of 4 classes";
  const Map map = read_superclass_map(path("map.txt"));
  EXPECT_EQ(map, read_superclass_map(files + "map.txt"));
  EXPECT_EQ(map.size(), 4u);
  EXPECT_EQ(superclass_count(map), 2);

  const Json report = Json::parse(result.out);
  EXPECT_EQ(report, Json::parse(read_file(files + "superclasses.json", 1 << 20)));
  EXPECT_EQ(report["source"]["split"], "val");
  EXPECT_EQ(report["source"]["images"], 64);
  size_t members = 0;
  for (const Json& cluster : report["clusters"]) {
    members += cluster["classes"].size();
    EXPECT_EQ(cluster["size"], cluster["classes"].size());
    EXPECT_TRUE(cluster.contains("inside_share") && cluster["largest_confusions"].size() <= 3);
  }
  EXPECT_EQ(members, 4u);
  for (const char* key : {"modularity", "normalised_cut", "inside_share", "eigengap"})
    EXPECT_TRUE(report[key].is_number()) << key;
  const std::string graph = read_file(files + "graph.svg", 1 << 20);
  EXPECT_TRUE(graph.starts_with("<svg ") && graph.ends_with("</svg>\n"));
}

TEST_F(SuperclassVerb, M22_OtherConfusions) {
  ASSERT_EQ(superclass({run(), "--experts", "2", "--confusion", "soft"}).exit_code, 0);
  const at::Tensor soft = read_npy(run() + "/superclasses/confusion.npy");
  EXPECT_TRUE(at::allclose(soft.sum(1), at::ones({4}, at::kDouble), 0, 1e-9));
  EXPECT_TRUE(is_refused(superclass({run(), "--experts", "2", "--confusion", "top5"}), "use hard or soft"));
}

TEST_F(SuperclassVerb, ClustersCountsWithoutARun) {
  const ProgramResult result = superclass({"--confusion", counts(), "--experts", "2", "--out", path("pairs.txt")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(read_file(path("pairs.txt"), 100), "0\n0\n1\n1\n");
  // 22 of 26 confusions are inside of the two pairs.
  EXPECT_NE(result.out.find("confusions inside super-classes: 84.6 %"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("2 taken for 3: 6"), std::string::npos) << result.out;
}

TEST_F(SuperclassVerb, M27_MergesAndSplitsGivenGroups) {
  const std::string groups = folder_->write("groups.txt", "0\n0\n1\n2\n"), map = path("given.txt");
  const std::vector<std::string> given = {"--confusion", counts(), "--groups", groups, "--out", map, "--experts"};
  ASSERT_EQ(superclass(with(given, {"2"})).exit_code, 0);
  EXPECT_EQ(read_superclass_map(map), (Map{0, 0, 1, 1}));
  ASSERT_EQ(superclass(with(given, {"4"})).exit_code, 0);
  EXPECT_EQ(read_superclass_map(map), (Map{0, 1, 2, 3}));
  const ProgramResult of_data = superclass({run(), "--experts", "4", "--groups", "data", "--out", map});
  ASSERT_EQ(of_data.exit_code, 0) << of_data.err;
  EXPECT_EQ(read_superclass_map(map), (Map{0, 1, 2, 3})) << "glyphs has four frames for four classes";
}

TEST_F(SuperclassVerb, ComparesMaps) {
  const std::string one = folder_->write("one.txt", "0\n0\n1\n1\n"),
                    other = folder_->write("other.txt", "0\n0\n1\n2\n");
  const ProgramResult result = superclass({"compare", one, other});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "adjusted Rand index: 0.5714 (4 classes in 2 and 3 super-classes)\n");
  EXPECT_TRUE(is_refused(superclass({"compare", one, folder_->write("short.txt", "0\n")}), "of 4 and of 1 classes"));
}

TEST_F(SuperclassVerb, RefusesBadInputInOneLine) {
  const std::string map = path("never.txt");
  const auto refuses = [&](std::vector<std::string> arguments, const std::string& words) {
    EXPECT_TRUE(is_refused(superclass(with(std::move(arguments), {"--out", map})), words));
    EXPECT_FALSE(fs::exists(map));
  };
  refuses({run(), "--experts", "5"}, "5 super-classes of 4 classes; choose 1 to 4");
  refuses({run()}, "needs --experts");
  refuses({"--experts", "2"}, "needs a dense run");
  refuses({run(), "--experts", "2", "--confusion", "sotf"}, "\"soft\"");
  refuses({run(), "--experts", "2", "--method", "ward"}, "spectral_ward");
  refuses({run(), "--experts", "2", "--groups", folder_->write("gap.txt", "0\n2\n0\n0\n")}, "gap.txt:2: super-class 2");
  refuses({run(), "--experts", "2", "--groups", folder_->write("three.txt", "0\n1\n0\n")}, "has 3 lines");
  refuses({run(), "--experts", "2", "--set", "data.validation=0.3"}, "could change which images are held out");
  refuses({path("nowhere"), "--experts", "2"}, "not a run folder");
  refuses({"--experts", "2", "--confusion", path("nowhere.npy")}, "nowhere.npy");
  refuses({"--experts", "2", "--confusion", folder_->write("cut.npy", "\x93NUMPY")}, "cut.npy");
  refuses({"--experts", "2", "--confusion", folder_->write("flat.npy", encode_npy(at::ones({4}, at::kLong)))},
          "square");
  refuses({"--experts", "2", "--confusion", folder_->write("minus.npy", encode_npy(at::full({4, 4}, -1, at::kLong)))},
          "row 0, column 0 is -1");
  refuses({"--experts", "2", "--confusion", folder_->write("sure.npy", encode_npy(at::eye(4, at::kLong)))},
          "no class is taken for another");
  ASSERT_EQ(
      train_dense(tiny_config(*folder_), path("sigmoid"), {"--set", "train.task_loss=sigmoid_cross_entropy"}).exit_code,
      0);
  refuses({path("sigmoid"), "--experts", "2"}, "confusions need a softmax");
  const std::string unfinished = path("unfinished");
  fs::create_directories(unfinished);
  fs::copy_file(run() + "/config.toml", unfinished + "/config.toml");
  refuses({unfinished, "--experts", "2"}, "has no checkpoint");
}

TEST_F(SuperclassVerb, M30_RefusesImagesOfTrainingAndTest) {
  EXPECT_TRUE(is_refused(superclass({run(), "--experts", "2", "--split", "train"}), "oof"));
  EXPECT_TRUE(is_refused(superclass({run(), "--experts", "2", "--split", "test"}), "leak its labels"));
}

TEST_F(SuperclassVerb, M30_RefusesARunWithoutHeldOutImages) {
  TemporaryFolder folder;
  for (int i = 0; i < 64; ++i) write_picture(folder, i < 48 ? "images/train" : "images/test", i % 4, i);
  const std::string config = config_of_pictures(folder, "images", "validation = 0");
  ASSERT_EQ(train_dense(config, folder.path("run")).exit_code, 0);
  EXPECT_TRUE(is_refused(superclass({folder.path("run"), "--experts", "2"}), "data.validation = 0.1"));
  EXPECT_FALSE(fs::exists(folder.path("run/superclasses")));
}

TEST_F(SuperclassVerb, M30_RefusesAHoldOutThatIsAlsoReported) {
  TemporaryFolder folder;
  for (int i = 0; i < 64; ++i) write_picture(folder, "images", i % 4, i);
  const std::string config = config_of_pictures(folder, "images", "validation = 0.25");
  ASSERT_EQ(train_dense(config, folder.path("run")).exit_code, 0);
  EXPECT_TRUE(is_refused(superclass({folder.path("run"), "--experts", "2"}), "has no test split"));
}

// Names of the splits say that they are apart, the pixels of one picture in four say that they are not.
TEST_F(SuperclassVerb, M30_FindsCopiesUnderOtherNames) {
  TemporaryFolder folder;
  for (int i = 0; i < 64; ++i) write_picture(folder, i < 48 ? "images/train" : "images/test", i % 4, i);
  for (int i = 64; i < 80; ++i) write_picture(folder, "images/val", i % 4, i);
  const std::string config = config_of_pictures(folder, "images");
  ASSERT_EQ(train_dense(config, folder.path("run")).exit_code, 0);
  ASSERT_EQ(superclass({folder.path("run"), "--experts", "2"}).exit_code, 0);
  for (int i = 0; i < 4; ++i)
    fs::copy_file(folder.path(cat("images/test/class", i, "/", 48 + i, ".png")),
                  folder.path(cat("images/val/class", i, "/copy", i, ".png")));
  EXPECT_TRUE(is_refused(superclass({folder.path("run"), "--experts", "2"}), "4 of the 20 images"));
}

TEST_F(SuperclassVerb, OutOfFoldCountsEveryTrainingImageAndGoesOnAfterAKill) {
  const std::vector<std::string> command = {run(), "--experts", "2", "--confusion", "oof", "--folds", "2", "--quiet"};
  Program killed(with({"superclass"}, command));
  const auto has_begun = [] { return fs::exists(run() + "/folds/jobs") && !fs::is_empty(run() + "/folds/jobs"); };
  for (int i = 0; i < 30000 && !has_begun(); ++i) usleep(2000);
  usleep(300000);
  killed.send(SIGKILL);
  killed.wait();
  ASSERT_EQ(superclass(command).exit_code, 0);
  const at::Tensor resumed = read_npy(run() + "/superclasses/confusion.npy");
  EXPECT_TRUE(at::equal(resumed.sum(1), at::full({4}, 64, at::kLong))) << "256 training images of 4 classes";
  fs::remove_all(run() + "/folds");
  ASSERT_EQ(superclass(command).exit_code, 0);
  EXPECT_TRUE(at::equal(resumed, read_npy(run() + "/superclasses/confusion.npy")));
}

// 8 classes of four frames, and a router that decides per image.
std::string routed_config(const TemporaryFolder& folder) {
  std::string config = kTinyConfig;
  config.replace(config.find("classes = 4"), 11, "classes = 8");
  return folder.write("routed.toml", config + "\n[router]\nname = \"per_image\"\n");
}

std::vector<std::string> pipeline(const TemporaryFolder& folder, const std::string& out) {
  return {"superclass", "train", routed_config(folder), "--experts", "3", "--out", folder.path(out), "--quiet"};
}

TEST(SuperclassTrain, M29_TrainsInOneCommandAndGoesOnAfterKills) {
  const TemporaryFolder folder;
  const ProgramResult whole = run_program(pipeline(folder, "whole"), {.timeout_seconds = 300});
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const Map map = read_superclass_map(folder.path("whole/superclasses/map.txt"));
  EXPECT_EQ(map.size(), 8u);
  EXPECT_EQ(superclass_count(map), 3);
  const Json stored = read_checkpoint(folder.path("whole/moe/checkpoints/best.safetensors")).state["data"];
  EXPECT_EQ(stored["super_class_of"].get<Map>(), map) << "the map is inside the checkpoint";

  // Killed in the dense training, between the stages and in the routed training.
  for (const char* until :
       {"killed/dense/metrics.jsonl", "killed/dense/done", "killed/moe/checkpoints/last.safetensors"}) {
    Program killed(pipeline(folder, "killed"), {.timeout_seconds = 300});
    for (int i = 0; i < 60000 && !fs::exists(folder.path(until)); ++i) usleep(1000);
    killed.send(SIGKILL);
    killed.wait();
    EXPECT_TRUE(fs::exists(folder.path(until))) << until;
  }
  const ProgramResult resumed = run_program(pipeline(folder, "killed"), {.timeout_seconds = 300});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(read_superclass_map(folder.path("killed/superclasses/map.txt")), map);
  for (const char* stage : {"dense", "moe"})
    expect_same_run(folder.path(cat("killed/", stage)), folder.path(cat("whole/", stage)));

  std::vector<std::string> other = pipeline(folder, "whole");
  other[4] = "2";
  EXPECT_TRUE(is_refused(run_program(other), "holds the stages of another call"));
}

TEST(SuperclassTrain, M29_RefusesBeforeItTrains) {
  const TemporaryFolder folder;
  const auto refuses = [&](const std::string& set, const std::string& words) {
    EXPECT_TRUE(is_refused(run_program(with(pipeline(folder, "never"), {"--set", set})), words)) << set;
    EXPECT_FALSE(fs::exists(folder.path("never")));
  };
  refuses("moe.blocks=[]", "has no MoE layers");
  refuses("router.name=softmax_topk", "is not trained with super-classes");
  refuses("data.classes=2", "3 super-classes of 2 classes");
  EXPECT_TRUE(is_refused(run_program(with(pipeline(folder, "never"), {"--confusion", "most"})), "unknown confusion"));
}

}  // namespace
}  // namespace sparsight::testing::superclass_test
