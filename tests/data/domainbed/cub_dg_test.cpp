#include "sparsight/data/domainbed/cub_dg.h"

#include <gtest/gtest.h>

#include <ATen/ops/full.h>

#include <filesystem>

#include "sparsight/core/error.h"
#include "sparsight/data/readers/folder.h"
#include "sparsight/data/readers/png_write.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"

namespace sparsight::cub_dg_test {
namespace {

using testing::error_text;
using testing::TemporaryFolder;

constexpr const char* kPictures[] = {"001.Albatross/a b.png", "001.Albatross/c.png", "002.Auklet/d.png"};
constexpr const char* kDomains[] = {"Candy", "Mosaic", "Natural", "Udnie"};

std::string picture(int64_t height, int64_t width) { return encode_png(at::full({3, height, width}, 9, at::kByte)); }

// Three photographs of 10 x 20 pixels (height x width), two parts; the copies "candy" are half as wide.
void write_birds(const TemporaryFolder& folder) {
  folder.write("cub/images.txt", "1 001.Albatross/a b.png\n2 001.Albatross/c.png\n3 002.Auklet/d.png\n");
  folder.write("cub/image_class_labels.txt", "1 1\n2 1\n3 2\n");
  folder.write("cub/train_test_split.txt", "1 1\n2 0\n3 1\n");
  folder.write("cub/bounding_boxes.txt", "1 1.0 2.0 3.0 4.0\n2 0 0 5 5\n3 1 1 2 2\n");
  folder.write("cub/parts/parts.txt", "1 beak\n2 left eye\n");
  folder.write("cub/parts/part_locs.txt",
               "1 1 8.0 4.0 1\n1 2 0.0 0.0 0\n2 1 2 3 1\n2 2 4.5 5 1\n3 1 0 0 0\n3 2 20 10 1\n");
  for (const char* name : kPictures) {
    folder.write(std::string("cub/images/") + name, picture(10, 20));
    folder.write(std::string("candy/") + name, picture(10, 10));
    for (const char* style : {"mosaic/", "udnie/"}) folder.write(std::string(style) + name, picture(8, 20));
  }
}

CubDgFolders folders_in(const TemporaryFolder& folder) {
  return {folder.path("cub"), folder.path("candy"), folder.path("mosaic"), folder.path("udnie")};
}

}  // namespace

TEST(Cub, G40_TextFilesAreRead) {
  const TemporaryFolder folder;
  write_birds(folder);
  const CubTable cub = read_cub(folder.path("cub"));
  EXPECT_EQ(cub.classes, (std::vector<std::string>{"001.Albatross", "002.Auklet"}));
  EXPECT_EQ(cub.images, (std::vector<std::string>(std::begin(kPictures), std::end(kPictures))));
  EXPECT_EQ(cub.labels, (std::vector<int64_t>{0, 0, 1}));
  EXPECT_EQ(cub.is_training, (std::vector<bool>{true, false, true}));
  EXPECT_EQ(cub.boxes[0].height, 4);
  EXPECT_EQ(cub.parts, (std::vector<std::string>{"beak", "left eye"}));
  EXPECT_FALSE(cub.keypoint(0, 1).visible);
  EXPECT_EQ(cub.keypoint(1, 1).x, 4.5);
}

TEST(Cub, DamagedTextFilesAreRefused) {
  const auto message = [](const std::string& file, const std::string& text) {
    const TemporaryFolder folder;
    write_birds(folder);
    folder.write("cub/" + file, text);
    return error_text([&] { read_cub(folder.path("cub")); });
  };
  EXPECT_EQ(message("images.txt", "1 001.A/a.png\n3 001.A/b.png\n"), "images.txt:2: 3 where 2 must follow");
  EXPECT_EQ(message("images.txt", "1 ../a.png\n"), "images.txt:1: \"../a.png\" is not class/file");
  EXPECT_NE(message("images.txt", "").find("images.txt lists no images"), std::string::npos);
  EXPECT_EQ(message("image_class_labels.txt", "1 1\n2 2\n3 2\n"),
            "image_class_labels.txt:3: class 2 has pictures in 001.Albatross and in 002.Auklet");
  EXPECT_EQ(message("image_class_labels.txt", "1 1\n2 1\n"),
            "image_class_labels.txt has 2 lines, images.txt lists 3 images");
  EXPECT_EQ(message("image_class_labels.txt", "1 1\n2 1\n3 3\n"), "image_class_labels.txt: class 2 has no picture");
  EXPECT_EQ(message("train_test_split.txt", "1 2\n"), "train_test_split.txt:1: \"2\" where 0 or 1 must be");
  EXPECT_EQ(message("bounding_boxes.txt", "1 1 2 x 4\n"), "bounding_boxes.txt:1: \"x\" is not a number");
  EXPECT_EQ(message("parts/parts.txt", "1 beak\n2 left, eye\n"),
            "parts/parts.txt:2: the part \"left, eye\" has a comma, a quote or another character that no name of a "
            "column can have");
  EXPECT_EQ(message("parts/parts.txt", "1 beak\n2 beak\n"), "parts/parts.txt:2: the part \"beak\" is there twice");
  EXPECT_EQ(message("parts/part_locs.txt", "1 1 8 4 1\n"),
            "parts/part_locs.txt has 1 lines; 3 images of 2 parts need 6");
}

TEST(CubDg, G41_FourDomainsWithEqualFilesAndRescaledKeypoints) {
  const TemporaryFolder folder;
  write_birds(folder);
  int64_t last = 0;
  EXPECT_EQ(build_cub_dg(folders_in(folder), folder.path("made"), [&](int64_t done, int64_t) { last = done; }), 12);
  EXPECT_EQ(last, 12);
  const FolderScan scan = scan_domain_folders(folder.path("made"));
  EXPECT_EQ(scan.domains, (std::vector<std::string>(std::begin(kDomains), std::end(kDomains))));
  EXPECT_EQ(scan.classes, (std::vector<std::string>{"001.Albatross", "002.Auklet"}));
  ASSERT_EQ(scan.images.size(), 12u);
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(scan.images[i].id, std::string(kDomains[i / 3]) + "/" + kPictures[i % 3]);
  const CubDgKeypoints points = read_cub_dg_keypoints(folder.path("made"));
  EXPECT_EQ(points.size(), 12u);
  EXPECT_FALSE(points.at("Natural/001.Albatross/a b.png").contains("left eye"));  // not visible
  // (8, 4) of 20 x 10 pixels (width x height): half of the width in Candy, 8 of 10 rows in Mosaic.
  EXPECT_EQ(points.at("Natural/001.Albatross/a b.png").at("beak").x, 8);
  EXPECT_EQ(points.at("Candy/001.Albatross/a b.png").at("beak").x, 4);
  EXPECT_EQ(points.at("Candy/001.Albatross/a b.png").at("beak").y, 4);
  EXPECT_NEAR(points.at("Mosaic/001.Albatross/a b.png").at("beak").y, 3.2, 1e-5);
  EXPECT_EQ(points.at("Udnie/002.Auklet/d.png").at("left eye").x, 20);
}

TEST(CubDg, G41_CopiesMustHaveTheSameFiles) {
  const auto message = [](const auto& change) {
    const TemporaryFolder folder;
    write_birds(folder);
    change(folder);
    const std::string text = error_text([&] { build_cub_dg(folders_in(folder), folder.path("made")); });
    EXPECT_FALSE(std::filesystem::exists(folder.path("made")));
    return text;
  };
  EXPECT_NE(message([](const TemporaryFolder& f) {
              std::filesystem::remove(f.path("mosaic/002.Auklet/d.png"));
            }).find("mosaic has no 002.Auklet/d.png, which CUB-200-2011 lists (2 of 3 pictures are there)"),
            std::string::npos);
  EXPECT_NE(message([](const TemporaryFolder& f) {
              f.write("udnie/002.Auklet/e.png", "x");
            }).find("udnie has 002.Auklet/e.png, which CUB-200-2011 does not list"),
            std::string::npos);
  EXPECT_NE(message([](const TemporaryFolder& f) {
              std::filesystem::remove_all(f.path("candy"));
            }).find("cannot list the pictures of"),
            std::string::npos);
}

}  // namespace sparsight::cub_dg_test
