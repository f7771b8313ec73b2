#include "sparsight/data/readers/image.h"

#include <gtest/gtest.h>

#include "sparsight/data/readers/npy.h"
#include "sparsight/data/readers/png_write.h"
#include "sparsight/engine/images/exif.h"
#include "tests/data/readers/fixtures.h"
#include "tests/support/program.h"

namespace sparsight::image_test {

using engine::scan_jpeg_markers;
using testing::complaint;
using testing::golden_image;
using testing::png_file;
using testing::says;
using testing::TemporaryFolder;
using testing::to_bytes;

int largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return a.to(at::kInt).sub(b.to(at::kInt)).abs().max().item<int>();
}

// The expected pixels are Pillow's (tests/golden/make_images.py).
class GoldenImage : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenImage, HasThePixelsThatPillowReads) {
  const std::string name = GetParam();
  const at::Tensor expected = parse_npy(to_bytes(golden_image(name + ".npy")), name);
  const at::Tensor image = decode_image(to_bytes(golden_image(name)), name);
  ASSERT_EQ(image.sizes(), expected.sizes());
  const bool jpeg = name.ends_with(".jpg");  // decoders may differ in rounding
  EXPECT_LE(largest_difference(image, expected), jpeg ? 1 : 0);
}

INSTANTIATE_TEST_SUITE_P(Readers, GoldenImage,
                         ::testing::Values("grey.jpg", "rgb.jpg", "rgb444.jpg", "progressive.jpg", "cmyk.jpg",
                                           "exif1.jpg", "exif2.jpg", "exif3.jpg", "exif4.jpg", "exif5.jpg", "exif6.jpg",
                                           "exif7.jpg", "exif8.jpg", "grey.png", "rgb.png", "rgba.png",
                                           "grey_alpha.png", "palette.png", "palette_transparent.png", "one_bit.png",
                                           "rgb16.png", "grey16.png", "exif8.png", "rgb.webp", "lossless.webp",
                                           "alpha.webp", "exif6.webp", "rgb.gif", "interlaced.gif", "animated.gif",
                                           "offset.gif", "rgb.bmp", "grey.bmp", "palette.bmp", "one_bit.bmp",
                                           "rgba.bmp", "rgb.tif", "grey.tif", "packed.tif", "palette.tif",
                                           "one_bit.tif", "exif6.tif"));

TEST(Image, GivesTheChannelsAskedFor) {
  const at::Tensor grey = decode_image(to_bytes(golden_image("rgb.png")), "x", {1});
  EXPECT_EQ(grey.sizes(), at::IntArrayRef({1, 7, 11}));
  EXPECT_EQ(largest_difference(grey, parse_npy(to_bytes(golden_image("grey.png.npy")), "x")),
            0);  // Pillow's convert("L")
  const at::Tensor rgb = decode_image(to_bytes(golden_image("grey.png")), "x", {3});
  EXPECT_EQ(rgb.sizes(), at::IntArrayRef({3, 7, 11}));
  EXPECT_TRUE(rgb[0].equal(rgb[2]));
}

TEST(Image, ReadsOneByOneAndVeryWide) {
  EXPECT_EQ(decode_image(to_bytes(png_file(1, 1, 8, 2, std::string("\0\x07\x08\x09", 4))), "x")[2][0][0].item<int>(),
            9);
  const at::Tensor wide = decode_image(to_bytes(png_file(30000, 2, 8, 0, std::string(2 * 30001, '\0'))), "x");
  EXPECT_EQ(wide.sizes(), at::IntArrayRef({1, 2, 30000}));
}

TEST(Image, RefusesABombBeforeItTakesMemory) {
  EXPECT_TRUE(says(complaint([] { decode_image(to_bytes(png_file(30000, 30000, 8, 2, "")), "bomb.png"); }),
                   "bomb.png: the image is 30000 x 30000 pixels; at most 67108864"));
  EXPECT_TRUE(
      says(complaint([] { decode_image(to_bytes(png_file(0x7fffffff, 0x7fffffff, 16, 6, "")), "x"); }), "at most"));
  EXPECT_TRUE(says(complaint([] { decode_image(to_bytes(golden_image("rgb.png")), "x", {0, 76}); }), "at most 76"));
}

TEST(Image, RefusesWhatIsNoImage) {
  const auto message = [](const std::string& bytes) { return complaint([&] { decode_image(to_bytes(bytes), "x"); }); };
  EXPECT_TRUE(says(message(""), "x is empty"));
  EXPECT_TRUE(says(message("....ftypavif"), "an AVIF or HEIF file"));
  EXPECT_TRUE(says(message("<!DOCTYPE html>"), "web page"));
  EXPECT_TRUE(says(message("\xFF\xD8\xFF"), "damaged JPEG"));
  EXPECT_TRUE(says(message("hello"), "unknown kind"));
}

// A truncated image is an error or, if only the trailer is missing, complete; it never has missing pixels.
TEST(Image, RefusesEveryCutOffFile) {
  for (const char* name : {"rgb.jpg", "progressive.jpg", "grey.jpg", "rgb.png", "palette.png", "lossless.webp",
                           "rgb.gif", "rgb.bmp", "packed.tif"}) {
    const std::string file = golden_image(name);
    const at::Tensor whole = decode_image(to_bytes(file), name);
    int refused = 0;
    for (size_t length = 0; length < file.size(); ++length) {
      try {
        EXPECT_TRUE(decode_image(to_bytes(file.substr(0, length)), name).equal(whole)) << name << " " << length;
      } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
        ++refused;
      }
    }
    EXPECT_GE(refused, static_cast<int>(file.size()) - 12) << name;
  }
}

// The check of a file agrees with reading it, cut off anywhere.
TEST(Image, ACheckFindsEveryCutOffFile) {
  const TemporaryFolder folder;
  for (const char* name : {"rgb.jpg", "rgb.png", "lossless.webp"}) {
    const std::string file = golden_image(name);
    for (size_t length = 0; length <= file.size(); ++length) {
      const std::string path = folder.write(name, file.substr(0, length));
      const std::string read = complaint([&] { read_image(path); });
      EXPECT_EQ(complaint([&] { check_image_file(path); }), read) << length;
    }
  }
  EXPECT_EQ(complaint([&] { check_image_file(folder.path("none.png")); }),
            complaint([&] { read_image(folder.path("none.png")); }));
}

TEST(Image, SurvivesEverySingleDamagedByte) {
  for (const char* name : {"exif6.jpg", "progressive.jpg", "cmyk.jpg", "palette_transparent.png", "rgb16.png"}) {
    const std::string file = golden_image(name);
    for (size_t i = 0; i < file.size(); ++i) {
      for (const char flip : {'\x01', '\x80', '\xFF'}) {
        std::string damaged = file;
        damaged[i] = static_cast<char>(damaged[i] ^ flip);
        try {
          const at::Tensor image = decode_image(to_bytes(damaged), name, {0, 1 << 16});
          EXPECT_EQ(image.dim(), 3);
        } catch (const Error&) {
        }
      }
    }
  }
}

TEST(Exif, PassesOverNonsense) {
  std::string file = golden_image("exif6.jpg");
  EXPECT_EQ(scan_jpeg_markers(to_bytes(file)).orientation, 6);
  const size_t tag = file.find(std::string("\x12\x01\x03\x00", 4)) == std::string::npos
                         ? file.find(std::string("\x01\x12\x00\x03", 4))
                         : file.find(std::string("\x12\x01\x03\x00", 4));
  ASSERT_NE(tag, std::string::npos);
  for (const char value : {'\x00', '\x09', '\xFF'}) {
    file[tag + 8] = file[tag + 9] = value;
    EXPECT_EQ(scan_jpeg_markers(to_bytes(file)).orientation, 1);
  }
  EXPECT_EQ(scan_jpeg_markers(to_bytes("\xFF\xD8\xFF\xE1\xFF\xFF")).orientation, 1);
  EXPECT_EQ(scan_jpeg_markers({}).orientation, 1);
}

TEST(PngWrite, IsReadBackUnchanged) {
  for (const char* name : {"rgb.png", "grey.png"}) {
    const at::Tensor image = decode_image(to_bytes(golden_image(name)), name);
    EXPECT_TRUE(decode_image(to_bytes(encode_png(image)), "x").equal(image));
  }
}

TEST(HasImageEnding, KnowsJpegAndPngInAnyCase) {
  for (const char* name : {"a.jpg", "a.JPEG", "b.c.Png", "a.gif", "a.tif", "a.TIFF", "a.webp", "a.bmp"})
    EXPECT_TRUE(has_image_ending(name));
  for (const char* name : {"a", "jpg", "a.avif", "a.jpg.txt", ""}) EXPECT_FALSE(has_image_ending(name));
}

}  // namespace sparsight::image_test
