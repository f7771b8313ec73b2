#include "sparsight/reproduce/train_job.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "sparsight/core/interrupt.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"

namespace sparsight::train_job_test {
namespace {

namespace fs = std::filesystem;

Json tiny_sections(int64_t epochs) {
  return {{"run", {{"seed", 3}, {"threads", 1}}},
          {"data", {{"name", "glyphs"}, {"classes", 4}, {"side", 16}, {"train", 256}, {"validation", 1}, {"test", 64}}},
          {"loader", {{"batch", 16}, {"workers", 1}}},
          {"model", {{"name", "mlp"}}},
          {"train", {{"epochs", epochs}, {"keep", "last"}}},
          {"optimizer", {{"name", "sgd"}, {"lr", 0.05}}}};
}

std::vector<double> accuracies(const JobTraining& training) {
  std::vector<double> all;
  for (const TrainedEpoch& epoch : training.epochs) all.push_back(epoch.accuracy);
  return all;
}

// Interrupted after its first epoch and restarted, it ends with the same bits as an uninterrupted training.
TEST(TrainJob, GoesOnInTheFolderOfItsJob) {
  const testing::TemporaryFolder folder;
  const Json sections = tiny_sections(8);
  const JobTraining whole = train_in_job(sections, folder.path("whole"));
  ASSERT_EQ(whole.epochs.size(), 8u);
  EXPECT_EQ(whole.steps_per_epoch, 16);
  EXPECT_TRUE(fs::is_empty(folder.path("whole"))) << "the trainer's folder is gone";

  const std::string metrics = folder.path("cut/training/metrics.jsonl");
  std::atomic<bool> over{false};
  std::thread user([&] {
    std::error_code error;
    while (!over && (!fs::exists(metrics, error) || fs::file_size(metrics, error) == 0)) usleep(200);
    set_interrupted(true);
  });
  const std::string message = testing::error_text([&] { train_in_job(sections, folder.path("cut")); });
  over = true;
  user.join();
  set_interrupted(false);
  EXPECT_TRUE(message.starts_with("interrupted after step ")) << message;
  EXPECT_TRUE(fs::exists(folder.path("cut/training/checkpoints/last.safetensors")));
  const JobTraining resumed = train_in_job(sections, folder.path("cut"));
  EXPECT_EQ(accuracies(resumed), accuracies(whole));
  EXPECT_EQ(resumed.test.at("accuracy"), whole.test.at("accuracy"));
  EXPECT_EQ(resumed.test.at("loss"), whole.test.at("loss"));
  EXPECT_TRUE(fs::is_empty(folder.path("cut")));
}

TEST(TrainJob, UnknownSettingsAreRefused) {
  const testing::TemporaryFolder folder;
  Json sections = tiny_sections(1);
  sections["train"]["epoch"] = 3;
  EXPECT_NE(testing::error_text([&] { train_in_job(sections, folder.path("job")); }).find("did you mean"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(folder.path("job")));
}

}  // namespace
}  // namespace sparsight::train_job_test
