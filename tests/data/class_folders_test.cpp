#include "sparsight/data/class_folders.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "tests/support/errors.h"
#include "tests/support/program.h"

namespace sparsight::class_folders_test {
namespace {

DataInfo make_info(std::vector<std::string> classes) {
  DataInfo info;
  info.classes = std::move(classes);
  info.domains = {"photo", "a/b"};
  return info;
}

std::string complaint_about(std::vector<std::string> classes) {
  return testing::error_text([&] { ClassFolders("x", make_info(std::move(classes)), false); });
}

}  // namespace

TEST(ClassFolders, DifferentNamesHaveDifferentVisibleFolders) {
  EXPECT_EQ(to_folder_name("tabby cat"), "tabby cat");
  EXPECT_EQ(to_folder_name("a/b"), "a%2Fb");
  EXPECT_EQ(to_folder_name(".."), "%2E.");
  EXPECT_EQ(to_folder_name("x.y"), "x.y");
  EXPECT_EQ(to_folder_name(std::string("a\0b", 3)), "a%00b");
  const std::vector<std::string> names{"a/b", "a_b", "a%2Fb", "a%b",         "a%25b", ".",      "%2E",
                                       "..",  "%",   "",      "._",          "_.",    "a//b",   "/",
                                       "_",   "a",   "A",     "caf\xC3\xA9", "%%",    "a\\xff", "a\xff"};
  std::set<std::string> folders;
  for (const std::string& name : names) {
    const std::string folder = to_folder_name(name);
    folders.insert(folder);
    EXPECT_EQ(folder.find_first_of(std::string("/\0", 2)), std::string::npos);
    EXPECT_NE(folder.substr(0, 1), ".");
  }
  EXPECT_EQ(folders.size(), names.size());
}

TEST(ClassFolders, MakesAFolderForEachClassOrDomainAndClass) {
  const testing::TemporaryFolder folder;
  ClassFolders by_class(folder.path(), make_info({"a/b", "a_b"}), false);
  EXPECT_EQ(by_class.of(0, 0), folder.path("a%2Fb"));
  EXPECT_EQ(by_class.of(1, 1), folder.path("a_b"));
  EXPECT_EQ(by_class.of(1, 0), folder.path("a%2Fb"));
  const testing::TemporaryFolder domains;
  ClassFolders by_domain(domains.path(), make_info({"c", "d"}), true);
  EXPECT_EQ(by_domain.of(1, 0), domains.path("a%2Fb/c"));
  EXPECT_EQ(by_domain.of(1, 1), domains.path("a%2Fb/d"));
  EXPECT_TRUE(std::filesystem::is_directory(domains.path("a%2Fb/d")));
}

TEST(ClassFolders, EqualAndLongNamesAreErrors) {
  EXPECT_EQ(complaint_about({"cat", "dog", "cat"}),
            "the classes 0 and 2 are both named \"cat\" and would share a folder; rename one of them");
  EXPECT_EQ(complaint_about({std::string(255, 'x')}), "");
  EXPECT_NE(complaint_about({std::string(256, 'x')}).find("takes 256 bytes; the name of a folder has at most 255"),
            std::string::npos);
  EXPECT_NE(complaint_about({std::string(100, '/')}).find("takes 300 bytes"), std::string::npos);
}

// A folder that is there already stands for a disk that does not tell A from a.
TEST(ClassFolders, NamesThatTheDiskDoesNotTellApartAreAnError) {
  const testing::TemporaryFolder folder;
  ClassFolders folders(folder.path(), make_info({"cat", "Cat"}), false);
  folders.of(0, 0);
  std::filesystem::create_directory_symlink("cat", folder.path("Cat"));
  EXPECT_EQ(testing::error_text([&] { folders.of(0, 1); }),
            "the class names \"cat\" and \"Cat\" are the same folder on this disk; rename one of them or choose a "
            "folder on another disk");
}

}  // namespace sparsight::class_folders_test
