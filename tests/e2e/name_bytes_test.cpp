// Names that are not UTF-8, in every argument of every verb: the verb works or says what is wrong in one line. What is
// printed is UTF-8, and JSON stays JSON.
#include <gtest/gtest.h>

#include <filesystem>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/atomic_file.h"
#include "tests/data/sets/set_files.h"
#include "tests/e2e/output.h"
#include "tests/e2e/train_fixture.h"

namespace sparsight::testing::name_bytes_test {
namespace {

namespace fs = std::filesystem;

const std::string kOdd = "x\xFF\xFE";
constexpr size_t kMaxFile = 1 << 24;

// A folder of two classes and a run that was trained on it, with names of any bytes wherever they may be.
class NameBytes : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    for (const char* part : {"train", "val", "test"})
      for (int i = 0; i < 32; ++i)
        for (const std::string& name : {kOdd, std::string("x\\xff\\xfe")})
          folder_->write(cat("set/", part, "/", name, "/", i, kOdd, ".png"), grey_png(i));
    tiny_config(*folder_);
    std::string config = kTinyConfig;
    config.replace(config.find("name = \"glyphs\""), config.find("[transforms]") - config.find("name = \"glyphs\""),
                   "name = \"folder\"\nroot = \"set\"\nchannels = 1\n\n");
    config.replace(config.find("epochs = 4"), 10, "epochs = 1");
    const std::string resize = "{op = \"resize\", size = [16, 16]}, ";
    for (const char* list : {"train = [", "eval = ["})
      config.insert(config.find(list) + std::string(list).size(), resize);
    folder_->write(kOdd + ".toml", config);
    trained_ = new ProgramResult(run({"train", kOdd + ".toml", "--out", kOdd}));
  }
  static void TearDownTestSuite() {
    delete trained_;
    delete folder_;
  }
  void SetUp() override { ASSERT_EQ(trained_->exit_code, 0) << trained_->err; }

  static ProgramResult run(std::vector<std::string> arguments) {
    ProgramOptions options;
    options.folder = folder_->path();
    return run_program(std::move(arguments), std::move(options));
  }

  static void expect_success(std::vector<std::string> arguments) {
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments[0] << ": " << result.err;
    EXPECT_TRUE(is_utf8(result.out) && is_utf8(result.err)) << result.out << result.err;
  }

  static void expect_json(std::vector<std::string> arguments, bool lines = false) {
    arguments.push_back("--json");
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(is_utf8(result.err)) << result.err;
    if (lines)
      EXPECT_FALSE(json_lines(result.out).empty());
    else
      EXPECT_TRUE(Json::accept(result.out)) << result.out;
  }

  static void expect_one_line(std::vector<std::string> arguments, int exit_code, const std::string& part) {
    const ProgramResult result = run(arguments);
    expect_failure(result, exit_code, part);
    EXPECT_TRUE(is_utf8(result.err)) << result.err;
  }

  static TemporaryFolder* folder_;
  static ProgramResult* trained_;
};

TemporaryFolder* NameBytes::folder_ = nullptr;
ProgramResult* NameBytes::trained_ = nullptr;

TEST_F(NameBytes, ARunMayHaveSuchNames) {
  EXPECT_TRUE(is_utf8(trained_->out) && is_utf8(trained_->err)) << trained_->out << trained_->err;
  for (const char* file : {"env.json", "config.toml", "metrics.jsonl", "report.html"})
    EXPECT_TRUE(is_utf8(read_file(folder_->path(kOdd + "/" + file), kMaxFile))) << file;
  EXPECT_EQ(Json::parse(read_file(folder_->path(kOdd + "/env.json"), kMaxFile))["command"][2], "x\\xff\\xfe.toml");
  expect_success({"train", "--resume", kOdd});
  expect_success({"report", kOdd});
  expect_success({"report", kOdd, "--out", kOdd + ".html"});
  expect_success({"report", kOdd, "--format", "markdown", "--out", kOdd + ".md"});
  expect_success({"config", "show", kOdd + ".toml"});
}

TEST_F(NameBytes, JsonStaysJson) {
  const std::string routing = kOdd + ".safetensors", images = "set/test/" + kOdd;
  expect_json({"eval", kOdd, "--records", kOdd + "_records", "--save-routing", routing});
  expect_json({"eval", kOdd, "--routing", routing});
  expect_json({"compare", kOdd + "_records", kOdd + "_records"});
  expect_json({"explain", kOdd, images, "--save-routing", routing});
  expect_json({"explain", kOdd});
  expect_json({"predict", kOdd, images, "--save-routing", routing}, true);
  expect_json({"predict", kOdd, images + "/0" + kOdd + ".png"}, true);
  EXPECT_TRUE(Json::accept(read_file(folder_->path(kOdd + "/explain/explain.json"), kMaxFile)));
  EXPECT_TRUE(Json::accept(read_file(folder_->path(kOdd + "_records/index.json"), kMaxFile)));
  expect_json({"attack", kOdd, "--attack", "fgsm", "--images", "4", "--out", kOdd + "_attack"});
  EXPECT_TRUE(Json::accept(read_file(folder_->path(kOdd + "_attack/result.json"), kMaxFile)));
  EXPECT_TRUE(is_utf8(read_file(folder_->path(kOdd + "_attack/images.csv"), kMaxFile)));
  EXPECT_TRUE(is_utf8(read_file(folder_->path(kOdd + "_attack/examples.html"), kMaxFile)));
  expect_success({"attack", kOdd, "--attack", "fgsm", "--images", "4"});
  for (const char* verb : {"eval", "explain"}) expect_success({verb, kOdd});
  expect_success({"predict", kOdd, images});
  expect_success({"compare", kOdd + "_records", kOdd + "_records"});
}

TEST_F(NameBytes, DataVerbsKeepTheClassesApart) {
  expect_success({"data", "inspect", "set"});
  expect_success({"data", "verify", "set"});
  expect_success({"data", "make", kOdd + "_made", "--from", "set"});
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_->path(kOdd + "_made/train")), {}), 2);
  expect_success({"data", "verify", kOdd + "_made"});
}

TEST_F(NameBytes, ErrorsAreOneLine) {
  const std::string missing = kOdd + "none", shown = "x\\xff\\xfenone";
  for (const char* verb : {"attack", "eval", "report", "explain"}) expect_one_line({verb, missing}, 1, shown);
  expect_one_line({"predict", missing, "set"}, 1, shown);
  expect_one_line({"train", "--resume", missing}, 1, shown);
  expect_one_line({"train", missing}, 2, shown);
  expect_one_line({"compare", missing, missing}, 1, shown);
  expect_one_line({"reproduce", missing}, 2, shown);
  expect_one_line({"reproduce", missing + ".toml"}, 1, shown);
  expect_one_line({"moe", missing}, 1, shown);
  expect_one_line({"data", "inspect", missing}, 1, shown);
  expect_one_line({"data", "make", "made", "--layout", missing}, 2, shown);
  expect_one_line({"eval", kOdd, "--routing", missing}, 1, shown);
  expect_one_line({"eval", kOdd, "--split", missing}, 2, shown);
  expect_one_line({"eval", kOdd, "--save-routing", missing + "/x"}, 1, shown);
  expect_one_line({"report", kOdd, "--out", missing + "/x"}, 1, shown);
  expect_one_line({"predict", kOdd, "set/test/" + kOdd, "--save-routing", missing + "/x"}, 1, shown);
}

TEST_F(NameBytes, SettingsMustBeUtf8AndNoFolderIsLeft) {
  for (const std::string setting : {"data.root", "data.name", "train.init_from", "model.size"})
    expect_one_line({"train", "tiny.toml", "--out", "no_run", "--set", setting + "=" + kOdd}, 2,
                    setting + " must be UTF-8, got \"x\\xff\\xfe\"");
  expect_one_line({"train", "tiny.toml", "--out", "no_run", "--init-from", kOdd}, 2, "train.init_from must be UTF-8");
  expect_one_line({"eval", kOdd, "--set", "data.root=" + kOdd}, 2, "data.root must be UTF-8");
  folder_->write("odd_text.toml", "[data]\nname = \"" + kOdd + "\"\n");
  expect_one_line({"train", "odd_text.toml", "--out", "no_run"}, 2, "odd_text.toml:2: ");
  EXPECT_FALSE(fs::exists(folder_->path("no_run")));
}

}  // namespace
}  // namespace sparsight::testing::name_bytes_test
