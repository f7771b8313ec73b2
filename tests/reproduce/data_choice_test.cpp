#include "sparsight/reproduce/data_choice.h"

#include <gtest/gtest.h>

#include "tests/support/program.h"

namespace sparsight::data_choice_test {
namespace {

TEST(DataChoice, TheRealSetIsTakenWhereItIs) {
  const testing::TemporaryFolder folder;
  const FigureRun with{Scale::smoke, folder.path()}, without{Scale::smoke, ""};
  DataChoice choice{"toys", {"train.bin", "raw/train.bin"}, "drawings for toys"};
  EXPECT_FALSE(has_real(choice, with));
  folder.write("toys/readme", "");
  EXPECT_FALSE(has_real(choice, with)) << "none of its files is there";
  EXPECT_EQ(substitute_for(choice, with), "drawings for toys");
  folder.write("toys/raw/train.bin", "");
  EXPECT_TRUE(has_real(choice, with));
  EXPECT_EQ(substitute_for(choice, with), "");
  EXPECT_EQ(real_folder(choice, with), folder.path("toys"));
  EXPECT_EQ(substitute_for(choice, without), "drawings for toys") << "no data at all";
  choice.is_complete = [&](const std::string& path) { return path != folder.path("toys"); };
  EXPECT_FALSE(has_real(choice, with));
}

TEST(DataChoice, AFolderAloneMayTell) {
  const testing::TemporaryFolder folder;
  const DataChoice choice{"toys", {}, "drawings"};
  const FigureRun run{Scale::smoke, folder.path()};
  EXPECT_FALSE(has_real(choice, run));
  folder.write("toys/any", "");
  EXPECT_TRUE(has_real(choice, run));
}

}  // namespace
}  // namespace sparsight::data_choice_test
