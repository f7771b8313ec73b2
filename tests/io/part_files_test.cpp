#include "sparsight/io/part_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "sparsight/io/atomic_file.h"
#include "tests/support/program.h"

namespace sparsight::part_files_test {
namespace {

namespace fs = std::filesystem;

class PartFiles : public ::testing::Test {
 protected:
  std::string last() const { return folder_.path("last.safetensors"); }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) names.insert(entry.path().filename().string());
    return names;
  }

  testing::TemporaryFolder folder_;
};

}  // namespace

TEST_F(PartFiles, AreNamedByWriteAndRank) {
  EXPECT_EQ(part_name(last(), 7, 0, 4), "last-7-00001-of-00004.safetensors");
  EXPECT_EQ(part_index(last()), folder_.path("last.safetensors.index.json"));
  EXPECT_EQ(next_part_write(last()), 1);
  EXPECT_EQ(next_part_write(folder_.path("missing/last.safetensors")), 1);
  for (const char* const name :
       {"last-3-00002-of-00004.safetensors", "last-12-00001-of-00001.safetensors", "best-99-00001-of-00001.safetensors",
        "last-x-00001-of-00001.safetensors", "last-55-00001.safetensors", "last-77-00001-of-00001.safetensors.old"})
    folder_.write(name, "");
  EXPECT_EQ(next_part_write(last()), 13);
  EXPECT_EQ(find_parts(last()), (std::vector<std::string>{folder_.path("last-12-00001-of-00001.safetensors"),
                                                          folder_.path("last-3-00002-of-00004.safetensors")}));
}

// A temporary file whose process has died is one that nobody has locked.
TEST_F(PartFiles, OfOtherWritesAreRemovedWithWhatKilledProcessesLeft) {
  for (const char* const name :
       {"last.safetensors", "last.safetensors.index.json", "last-3-00001-of-00002.safetensors",
        "last-4-00001-of-00002.safetensors", "last-4-00002-of-00002.safetensors.123-0.tmp",
        "last-2-00001-of-00002.safetensors.123-0.tmp", "best-1-00001-of-00001.safetensors", "last-notes.safetensors"})
    folder_.write(name, "");
  remove_all_but_write(last(), 4);
  EXPECT_EQ(files(), (std::set<std::string>{"last.safetensors.index.json", "last-4-00001-of-00002.safetensors",
                                            "best-1-00001-of-00001.safetensors", "last-notes.safetensors"}));
  folder_.write("last.safetensors", "");
  remove_all_but_file(last());
  EXPECT_EQ(files(),
            (std::set<std::string>{"last.safetensors", "best-1-00001-of-00001.safetensors", "last-notes.safetensors"}));
}

}  // namespace sparsight::part_files_test
