#include "sparsight/reproduce/old_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include <nlohmann/json.hpp>

#include "sparsight/jobs/job_store.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"

namespace sparsight::old_folder_test {
namespace {

namespace fs = std::filesystem;
using testing::message_of;
using testing::TemporaryFolder;

const std::string kOf = "toy/line at scale smoke, stand-in data (glyphs)";
const std::string kOld = R"({"format": 1, "figure": "toy/line", "scale": "smoke", "stand_in": "glyphs"})";

TEST(OldFolder, KeepsWhatIsDone) {
  const TemporaryFolder folder;
  const std::string run = folder.path("run");
  const Json done = {{"x", 1}}, failed = {{"x", 2}};
  folder.write("run/figure.json", kOld);
  folder.write("run/env.json", "{}");
  folder.write("run/jobs/" + job_id(done) + ".json", R"({"settings": {"x": 1}, "result": {"y": 2.5}, "seconds": 3})");
  folder.write("run/jobs/" + job_id(failed) + ".failed.json", R"({"settings": {"x": 2}, "error": "no"})");
  folder.write("run/jobs/" + job_id(failed) + ".lock", "77");
  folder.write("run/jobs/notes.txt", "mine");
  convert_old_folder(run, kOf);
  const JobStore store(run, kOf);
  ASSERT_TRUE(store.read(done));
  EXPECT_EQ(store.read(done)->result, Json({{"y", 2.5}}));
  EXPECT_EQ(store.read(done)->seconds, 3);
  EXPECT_FALSE(store.has_failed(failed));
  EXPECT_TRUE(store.claim(failed));
  EXPECT_FALSE(fs::exists(run + "/figure.json"));
  EXPECT_EQ(read_file(run + "/jobs/notes.txt", 10), "mine");
  convert_old_folder(run, kOf);  // once more does nothing
  EXPECT_TRUE(store.is_done(done));
}

// A conversion that was cut off between two files goes on.
TEST(OldFolder, GoesOnWhereItWasKilled) {
  const TemporaryFolder folder;
  const std::string run = folder.path("run");
  const Json first = {{"x", 1}}, second = {{"x", 2}};
  folder.write("run/figure.json", kOld);
  folder.write("run/jobs/" + job_id(first) + "/result.json", R"({"settings": {"x": 1}, "result": 1, "seconds": 3})");
  folder.write("run/jobs/" + job_id(second) + ".json", R"({"settings": {"x": 2}, "result": 2, "seconds": 3})");
  convert_old_folder(run, kOf);
  const JobStore store(run, kOf);
  EXPECT_TRUE(store.is_done(first) && store.is_done(second));
}

TEST(OldFolder, OthersAreRefusedAndLeftAlone) {
  const TemporaryFolder folder;
  const std::string run = folder.path("run");
  convert_old_folder(run, kOf);
  EXPECT_FALSE(fs::exists(run));
  folder.write("run/figure.json", kOld);
  EXPECT_EQ(message_of([&] { convert_old_folder(run, "toy/line at scale smoke, real data"); }),
            run + " holds " + kOf + ", not toy/line at scale smoke, real data; choose another folder with --run");
  folder.write("run/figure.json", R"({"format": 7, "figure": "toy/line"})");
  EXPECT_NE(message_of([&] { convert_old_folder(run, kOf); }).find("is of format 7"), std::string::npos);
  for (const char* damaged : {"", "[]", "{", "{\"format\": 1}"}) {
    folder.write("run/figure.json", damaged);
    EXPECT_NE(message_of([&] { convert_old_folder(run, kOf); }).find("figure.json is damaged"), std::string::npos);
  }
  EXPECT_FALSE(fs::exists(run + "/jobs.json"));
}

}  // namespace
}  // namespace sparsight::old_folder_test
