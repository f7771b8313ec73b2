// What `data verify` says of a dataset whose check was interrupted.
#include "sparsight/data/verify.h"

#include <gtest/gtest.h>

#include "sparsight/core/interrupt.h"
#include "tests/data/sets/set_files.h"

namespace sparsight::verify_test {

// The folder has two parts of 40 images. The check of the first one is interrupted at its tenth image: what was not
// looked at is neither valid nor a problem, and nor is the interruption.
TEST(Verify, AnInterruptedCheckSaysWhatItLookedAt) {
  const testing::TemporaryFolder folder;
  for (const char* part : {"test", "train"})
    for (int i = 0; i < 40; ++i)
      folder.write(cat("set/", part, "/a/", i, ".png"), testing::grey_png(static_cast<uint8_t>(i)));
  folder.write("set/test/a/bad.png", "");
  const LocatedSet set = locate_set(folder.path("set"));
  const Verification whole = verify_set(set, [](int64_t, int64_t) {});
  EXPECT_FALSE(whole.interrupted);
  EXPECT_EQ(whole.images, 80);
  EXPECT_EQ(whole.looked_at, 81);
  ASSERT_EQ(whole.problems.size(), 1u);
  const Verification cut = verify_set(set, [](int64_t done, int64_t) {
    if (done == 10) set_interrupted(true);
  });
  set_interrupted(false);
  EXPECT_TRUE(cut.interrupted);
  EXPECT_GE(cut.looked_at, 10);
  EXPECT_LT(cut.looked_at, 41);  // each thread ends with the image that it has
  EXPECT_EQ(cut.images + std::ssize(cut.problems), cut.looked_at);
  for (const std::string& problem : cut.problems) EXPECT_NE(problem.find("bad.png"), std::string::npos) << problem;
}

}  // namespace sparsight::verify_test
