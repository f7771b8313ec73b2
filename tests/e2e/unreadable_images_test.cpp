// A run over files of which some cannot be read: each is named once, counted in the metrics and at the end.
#include <gtest/gtest.h>

#include <filesystem>

#include "sparsight/core/json_text.h"
#include "sparsight/io/atomic_file.h"
#include "tests/data/sets/set_files.h"
#include "tests/e2e/output.h"
#include "tests/e2e/train_fixture.h"

namespace sparsight::testing::unreadable_images_test {
namespace {

int64_t occurrences(const std::string& text, const std::string& part) {
  int64_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Two classes of 32 images for each split; two of training and one of test are cut off.
std::string write_set(const TemporaryFolder& folder) {
  for (const char* part : {"train", "val", "test"})
    for (int i = 0; i < 32; ++i)
      for (const char* name : {"a", "b"}) folder.write(cat("set/", part, "/", name, "/", i, ".png"), grey_png(i));
  for (const char* name : {"train/a/3", "train/b/5", "test/a/7"})
    folder.write(cat("set/", name, ".png"), grey_png(1).substr(0, 50));
  return folder.path("set");
}

// A training on these files into folder/run.
std::vector<std::string> train_on(const TemporaryFolder& folder, const std::string& set) {
  const std::string resize = "{op = \"resize\", size = [16, 16]}";
  std::string config = kTinyConfig;
  const size_t data = config.find("[data]"), loader = config.find("[loader]");
  config.replace(data, loader - data, "");
  return {"train", folder.write("c.toml", config),
          "--out", folder.path("run"),
          "--set", "data.name=folder",
          "--set", "data.root=" + set,
          "--set", "data.channels=1",
          "--set", "transforms.train=[" + resize + "]",
          "--set", "transforms.eval=[" + resize + "]",
          "--set", "train.epochs=2"};
}

TEST(UnreadableImages, AreFoundBeforeTheTraining) {
  const TemporaryFolder folder;
  const ProgramResult trained = run_program(train_on(folder, write_set(folder)));
  EXPECT_EQ(trained.exit_code, 1);
  EXPECT_NE(trained.err.find("set/train/a/3.png is a damaged PNG file"), std::string::npos) << trained.err;
  EXPECT_NE(trained.err.find("(the first of 3 images that cannot be read); `sparsight data verify` lists all such"),
            std::string::npos)
      << trained.err;
  EXPECT_FALSE(std::filesystem::exists(folder.path("run")));
}

TEST(UnreadableImages, AreNamedOnceAndCounted) {
  const TemporaryFolder folder;
  const std::string run = folder.path("run");
  std::vector<std::string> arguments = train_on(folder, write_set(folder));
  arguments.insert(arguments.end(), {"--set", "loader.on_bad_image=skip"});
  const ProgramResult trained = run_program(arguments);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(occurrences(trained.err, "skipped an image: "), 3) << trained.err;
  EXPECT_NE(trained.err.find("3 images could not be read and were skipped: 2 of training, 0 of validation, 1 of test"),
            std::string::npos)
      << trained.err;

  int64_t notes = 0;
  for (const Json& line : json_lines(read_file(run + "/metrics.jsonl", 1 << 20))) {
    const int64_t count = line.value("unreadable", int64_t{0});
    const bool done = line.at("kind") == "done", test = line.value("split", "") == "test";
    EXPECT_EQ(count, done ? 3 : test ? 1 : 0) << line;
    if (line.at("kind") == "note") ++notes;
  }
  EXPECT_EQ(notes, 1);

  const ProgramResult evaluated = run_program({"eval", run, "--json"});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  const Json line = json_lines(evaluated.out).at(0);
  EXPECT_EQ(line.at("unreadable"), 1);
  EXPECT_EQ(line.at("images"), 63);
  EXPECT_NE(evaluated.err.find("1 of the 64 images of the test split could not be read and were left out"),
            std::string::npos)
      << evaluated.err;
}

}  // namespace
}  // namespace sparsight::testing::unreadable_images_test
