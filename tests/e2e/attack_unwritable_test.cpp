// Attacks that are done, in a folder that can no longer be written to: what they found is printed.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"
#include "tests/e2e/attack_fixture.h"
#include "tests/e2e/output.h"
#include "tests/support/disk_faults.h"
#include "tests/support/sanitizers.h"
#include "tests/support/small_disk.h"

namespace sparsight::testing::attack_unwritable_test {
namespace {

namespace fs = std::filesystem;

class AttackUnwritable : public AttackFixture {};

// Without the lines that name folders and times.
std::string accuracy_line(const std::string& text) {
  const size_t begin = text.find("success rate");
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace

TEST_F(AttackUnwritable, AFinishedOneIsReadFromAReadOnlyDisk) {
  SmallDisk disk("size=16m");
  if (!disk.mounted()) GTEST_SKIP() << "needs root, to mount a small tmpfs";
  const std::string settings = "--attack fgsm --eps 4/255 --images 16 --out " + disk.folder().path("done");
  const Json found = result(settings);
  ASSERT_TRUE(disk.make_read_only());
  EXPECT_EQ(result(settings), found);
}

// The disk is full from the first file on that is written after the last piece of images.
TEST_F(AttackUnwritable, TheResultComesBeforeTheError) {
  if (test::kAddressSanitizer) GTEST_SKIP() << "a preloaded library comes before the sanitizer's";
  const TemporaryFolder folder;
  const std::vector<std::string> command =
      words("--attack fgsm --eps 4/255 --images 16 --out " + folder.path("attack"));
  DiskFaults faults(folder.path());
  const ProgramResult unbroken = faults.run_and_count(command);
  ASSERT_EQ(unbroken.exit_code, 0) << unbroken.err;
  ASSERT_NE(accuracy_line(unbroken.out), "");
  std::vector<FileOperation> after_the_attack;
  for (const FileOperation& operation : faults.operations())
    for (const char* file : {"adversarial.safetensors", "images.csv", "index.json", "examples.html", "result.json"})
      if (operation.text.starts_with("rename") && operation.text.find(file) != std::string::npos)
        after_the_attack.push_back(operation);
  ASSERT_GE(after_the_attack.size(), 5u);
  for (const FileOperation& operation : after_the_attack) {
    SCOPED_TRACE(operation.text);
    fs::remove_all(folder.path("attack"));
    const ProgramResult full = faults.run_with(DiskFault::full, operation.number, command);
    EXPECT_EQ(full.exit_code, 1);
    EXPECT_NE(full.err.find("error: cannot write"), std::string::npos) << full.err;
    EXPECT_EQ(accuracy_line(full.out), accuracy_line(unbroken.out)) << full.out;
    EXPECT_EQ(full.out.find("files: "), std::string::npos) << full.out;
  }
}

}  // namespace sparsight::testing::attack_unwritable_test
