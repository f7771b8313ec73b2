#include "sparsight/analysis/superclasses/map_file.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "sparsight/io/atomic_file.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"

namespace sparsight::map_file_test {
namespace {

using Map = std::vector<int64_t>;
using testing::error_text;

class SuperclassMap : public ::testing::Test {
 protected:
  testing::TemporaryFolder folder_;
  std::string path() const { return folder_.path("map.txt"); }
  Map read(const std::string& text) const {
    write_file_atomically(path(), text);
    return read_superclass_map(path());
  }
  // What follows the path of the file in the error.
  std::string error(const std::string& text) const {
    const std::string message = error_text([&] { read(text); });
    EXPECT_TRUE(message.starts_with(path())) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message.substr(std::min(path().size(), message.size()));
  }
};

TEST_F(SuperclassMap, M27_ComesBackAsWritten) {
  const Map map = {1, 0, 2, 2, 1};
  write_superclass_map(path(), map);
  EXPECT_EQ(read_superclass_map(path()), map);
  EXPECT_EQ(superclass_count(map), 3);
}

TEST_F(SuperclassMap, AcceptsLineEndsOfOtherEditors) {
  EXPECT_EQ(read("0\r\n1\r\n"), (Map{0, 1}));
  EXPECT_EQ(read(" 0\n1\t\n0"), (Map{0, 1, 0}));
}

TEST_F(SuperclassMap, NamesTheLineThatIsNoNumber) {
  for (const std::string line : {"cat", "1.0", "1 2", "", "+1", "0x1", "1,", "-1", "99999999999999999999"})
    EXPECT_TRUE(error("0\n" + line + "\n1\n").starts_with(":2: \"" + line + "\" is not a super-class")) << line;
  EXPECT_TRUE(error(std::string("0\n1\0\n", 5)).starts_with(":2: \"1\\x00\" is not a super-class"));
  EXPECT_TRUE(error("0\n1\n# made by hand\n").starts_with(":3: \"# made by hand\" is not"));
  EXPECT_TRUE(error("0\n" + std::string(5000, '7')).starts_with(":2: \"" + std::string(40, '7') + "...\" is not"));
}

TEST_F(SuperclassMap, RefusesGapsAndEmptyFiles) {
  EXPECT_TRUE(error("0\n1\n3\n1\n").starts_with(":3: super-class 3 is named, but no line names 2"));
  EXPECT_TRUE(error("1\n").starts_with(":1: super-class 1 is named, but no line names 0"));
  EXPECT_TRUE(error("").starts_with(":1: the file is empty"));
  EXPECT_TRUE(error("\n").starts_with(":1: \"\" is not a super-class"));
}

TEST_F(SuperclassMap, RefusesAMillionLines) {
  std::string text;
  for (int i = 0; i < 1'000'000; ++i) text += "0\n";
  EXPECT_TRUE(error(text).starts_with(":100001: a map has at most 100000 lines"));
}

TEST_F(SuperclassMap, RefusesWhatIsNoFile) {
  EXPECT_NE(error_text([] { read_superclass_map("/nowhere/map.txt"); }).find("/nowhere/map.txt"), std::string::npos);
  EXPECT_NE(error_text([] { read_superclass_map("/"); }).find("it is a folder"), std::string::npos);
}

}  // namespace
}  // namespace sparsight::map_file_test
