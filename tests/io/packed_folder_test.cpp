#include "sparsight/io/packed_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include <nlohmann/json.hpp>

#include "sparsight/core/input_file.h"
#include "sparsight/core/options.h"
#include "tests/support/errors.h"
#include "tests/support/folder_contents.h"
#include "tests/support/program.h"

namespace sparsight::packed_folder_test {

TEST(PackedFolder, FilesComeBackByteForByte) {
  const testing::TemporaryFolder folder;
  folder.write("packed/a", std::string("\0\xFF\n", 3));
  folder.write("packed/b.txt", "");
  unpack_folder(folder.path("made"), packed_folder(folder.path("packed")));
  EXPECT_EQ(testing::folder_contents(folder.path("made")), testing::folder_contents(folder.path("packed")));
}

TEST(PackedFolder, BytesThatAreNoFolderMakeNothing) {
  const testing::TemporaryFolder folder;
  std::vector<std::string> wrong{"", "x", "\xC1"};
  for (const char* const name : {"../a", "/a", "..", "a/b"}) {
    const auto packed = Json::to_msgpack(Json{{name, Json::binary({1})}});
    wrong.emplace_back(packed.begin(), packed.end());
  }
  for (const std::string& bytes : wrong) {
    const std::string error = testing::error_text([&] { unpack_folder(folder.path("made"), bytes); });
    EXPECT_NE(error.find("not a packed folder"), std::string::npos) << error;
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_NE(testing::error_text([&] { packed_folder(folder.path("none")); }), "");
}

}  // namespace sparsight::packed_folder_test
