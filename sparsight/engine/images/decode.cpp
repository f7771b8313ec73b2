#include "sparsight/engine/images/decode.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "sparsight/core/error.h"
#include "sparsight/core/input_file.h"
#include "sparsight/engine/images/pixels.h"
#include "sparsight/engine/images/planes.h"

namespace sparsight::engine {
namespace {

struct ImageFormat {
  const char* kind;
  std::vector<const char*> endings;  // lower case
  bool (*is)(ByteView bytes);        // by the first bytes
  Pixels (*decode)(ByteView bytes, const std::string& name, int64_t max_pixels);
  std::string_view last_bytes = {};  // of a whole file; "": its last bytes may be any
};

const std::vector<ImageFormat>& image_formats() {
  static const std::vector<ImageFormat> formats{
      {"JPEG",
       {"jpg", "jpeg"},
       [](ByteView bytes) { return starts_with(bytes, "\xFF\xD8\xFF"); },
       decode_jpeg,
       "\xFF\xD9"},
      {"PNG",
       {"png"},
       [](ByteView bytes) { return starts_with(bytes, "\x89PNG\r\n\x1A\n"); },
       decode_png,
       "IEND\xAE\x42\x60\x82"},
      {"WebP",
       {"webp"},
       [](ByteView bytes) { return starts_with(bytes, "RIFF") && starts_with(bytes, "WEBP", 8); },
       decode_webp},
      {"GIF", {"gif"}, [](ByteView bytes) { return starts_with(bytes, "GIF8"); }, decode_gif},
      {"BMP", {"bmp"}, [](ByteView bytes) { return starts_with(bytes, "BM"); }, decode_bmp},
      {"TIFF",
       {"tif", "tiff"},
       [](ByteView bytes) {
         return starts_with(bytes, {"II*\0", 4}) || starts_with(bytes, {"MM\0*", 4}) ||
                starts_with(bytes, {"II+\0", 4}) || starts_with(bytes, {"MM\0+", 4});
       },
       decode_tiff},
  };
  return formats;
}

// The probable type of a file that is of none of these.
const char* other_kind(ByteView bytes) {
  if (starts_with(bytes, "ftyp", 4)) return "an AVIF or HEIF file";
  if (starts_with(bytes, "<")) return "a text file (perhaps a web page)";
  return "of an unknown kind";
}

}  // namespace

void check_image_size(int64_t height, int64_t width, int64_t max_pixels, const std::string& name) {
  if (height < 1 || width < 1) fail(name, ": the image is ", width, " x ", height, " pixels; at least 1 x 1 is needed");
  if (height > max_pixels / width)
    fail(name, ": the image is ", width, " x ", height, " pixels; at most ", max_pixels,
         " pixels are read, make it smaller");
}

ByteImage decode_byte_image(ByteView bytes, const std::string& name, const ImageDecoding& decoding) {
  SPARSIGHT_CHECK(decoding.channels == 0 || decoding.channels == 1 || decoding.channels == 3);
  if (bytes.empty()) fail(name, " is empty (0 bytes); get the file again or remove it");
  const auto format = std::ranges::find_if(image_formats(), [&](const ImageFormat& each) { return each.is(bytes); });
  if (format == image_formats().end())
    fail(name, " is ", other_kind(bytes), "; images are read as ", image_kinds(), ", convert it");
  const Pixels pixels = format->decode(bytes, name, decoding.max_pixels);
  ByteImage image(0, 0, 0);
  upright_planes({pixels.values.data(), pixels.height, pixels.width, pixels.channels, pixels.width * pixels.channels},
                 pixels.orientation, decoding.channels == 0 ? pixels.channels : decoding.channels, image);
  return image;
}

ByteImage read_byte_image(const std::string& path, const ImageDecoding& decoding) {
  return decode_byte_image(read_bytes(path, kMaxImageFileBytes), printable(path), decoding);
}

void check_image_file(const std::string& path) {
  const auto is_whole = [&] {
    std::array<uint8_t, 8> first{}, last{};
    const Descriptor file = open_for_reading(path);
    const size_t size = size_of_file(file, path);
    if (size < first.size() + last.size()) return false;
    read_all_at(file.get(), first.data(), first.size(), 0, path);
    read_all_at(file.get(), last.data(), last.size(), size - last.size(), path);
    return std::ranges::any_of(image_formats(), [&](const ImageFormat& format) {
      const size_t marked = format.last_bytes.size();
      return marked > 0 && format.is(first) && starts_with(last, format.last_bytes, last.size() - marked);
    });
  };
  if (!is_whole()) read_byte_image(path);
}

const std::string& image_kinds() {
  static const std::string kinds = [] {
    const std::vector<ImageFormat>& formats = image_formats();
    std::string text = formats.front().kind;
    for (size_t i = 1; i < formats.size(); ++i) text += cat(i + 1 < formats.size() ? ", " : " or ", formats[i].kind);
    return text;
  }();
  return kinds;
}

bool has_image_ending(const std::string& path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string::npos) return false;
  std::string ending = path.substr(dot + 1);
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::ranges::any_of(image_formats(), [&](const ImageFormat& format) {
    return std::ranges::find(format.endings, ending) != format.endings.end();
  });
}

}  // namespace sparsight::engine
