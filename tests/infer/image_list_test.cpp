#include "sparsight/infer/image_list.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "sparsight/core/log.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"

namespace sparsight::image_list_test {

TEST(ImageList, TakesFilesFoldersAndLinesOfInput) {
  const testing::TemporaryFolder folder;
  folder.write("b/2.PNG", "");
  folder.write("b/1.jpeg", "");
  folder.write("b/deep/0.jpg", "");
  folder.write("b/notes.txt", "");
  std::istringstream input("x.png\r\n\ny z.png\n");
  EXPECT_EQ(image_list({"a.bmp", folder.path("b"), "-"}, input),
            (std::vector<std::string>{"a.bmp", folder.path("b/1.jpeg"), folder.path("b/2.PNG"),
                                      folder.path("b/deep/0.jpg"), "x.png", "y z.png"}));
}

TEST(ImageList, WarnsOfOtherFilesInFolders) {
  const testing::TemporaryFolder folder;
  for (const char* name : {"a/1.png", "a/2.avif", "a/.hidden", "b/1.png", "b/deep/3.pgm"}) folder.write(name, "");
  std::istringstream input;
  std::ostringstream log;
  LogSettings settings;
  settings.stream = &log;
  set_log(settings);
  image_list({folder.path("a"), folder.path("b"), "c.avif"}, input);
  set_log(default_log_settings());
  EXPECT_EQ(log.str(), "warning: 2 files are not JPEG, PNG, WebP, GIF, BMP or TIFF and were ignored: " +
                           folder.path("a/2.avif") + ", " + folder.path("b/deep/3.pgm") + "; convert them\n");
}

TEST(ImageList, AnInputWithoutEndIsRefused) {
  std::istringstream long_line(std::string(100'000, 'x'));
  EXPECT_NE(testing::error_text([&] { image_list({"-"}, long_line); }).find("longer than 65536 bytes"),
            std::string::npos);
  std::string lines;
  for (int i = 0; i < 9'000'000; ++i) lines += "y\n";
  std::istringstream many(lines);
  EXPECT_NE(testing::error_text([&] { image_list({"-"}, many); }).find("names more than 8388608 images"),
            std::string::npos);
}

TEST(ImageList, SaysWhereThereIsNothing) {
  const testing::TemporaryFolder folder;
  std::istringstream empty;
  EXPECT_NE(testing::error_text([&] { image_list({folder.path()}, empty); }).find("contains no .jpg"),
            std::string::npos);
  EXPECT_NE(testing::error_text([&] { image_list({"-"}, empty); }).find("no images were given"), std::string::npos);
}

}  // namespace sparsight::image_list_test
