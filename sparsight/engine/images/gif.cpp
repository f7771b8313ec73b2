#include <gif_lib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "sparsight/core/error.h"
#include "sparsight/engine/images/pixels.h"

namespace sparsight::engine {
namespace {

int read_gif_bytes(GifFileType* gif, GifByteType* out, int length) {
  auto* left = static_cast<ByteView*>(gif->UserData);
  const size_t count = std::min(left->size(), static_cast<size_t>(std::max(length, 0)));
  std::memcpy(out, left->data(), count);
  *left = left->subspan(count);
  return static_cast<int>(count);
}

struct CloseGif {
  void operator()(GifFileType* gif) const { DGifCloseFile(gif, nullptr); }
};

// Passes over what comes before the first picture. Not DGifSlurp(), which would decode all of them.
bool find_picture(GifFileType* gif) {
  GifRecordType kind = UNDEFINED_RECORD_TYPE;
  while (DGifGetRecordType(gif, &kind) == GIF_OK && kind == EXTENSION_RECORD_TYPE) {
    int code = 0;
    GifByteType* block = nullptr;
    if (DGifGetExtension(gif, &code, &block) != GIF_OK) return false;
    while (block)
      if (DGifGetExtensionNext(gif, &block) != GIF_OK) return false;
  }
  return kind == IMAGE_DESC_RECORD_TYPE && DGifGetImageDesc(gif) == GIF_OK;
}

// The rows of a picture in the order in which the file has them (GIF89a, appendix E).
std::vector<int> stored_rows(int height, bool interlaced) {
  std::vector<int> rows;
  if (!interlaced)
    for (int y = 0; y < height; ++y) rows.push_back(y);
  else
    for (const auto& [first, step] : {std::pair{0, 8}, {4, 8}, {2, 4}, {1, 2}})
      for (int y = first; y < height; y += step) rows.push_back(y);
  return rows;
}

}  // namespace

Pixels decode_gif(ByteView bytes, const std::string& name, int64_t max_pixels) {
  ByteView left = bytes;
  int error = 0;
  const std::unique_ptr<GifFileType, CloseGif> gif(DGifOpen(&left, read_gif_bytes, &error));
  if (!gif || !find_picture(gif.get())) fail(name, " is a damaged GIF file");
  const GifImageDesc& picture = gif->Image;
  const ColorMapObject* colours = picture.ColorMap ? picture.ColorMap : gif->SColorMap;
  const int64_t height = std::max(gif->SHeight, picture.Top + picture.Height),
                width = std::max(gif->SWidth, picture.Left + picture.Width);
  check_image_size(height, width, max_pixels, name);
  if (!colours || picture.Width < 1 || picture.Height < 1) fail(name, " is a damaged GIF file");
  Pixels pixels{height, width, 3, 1, {}};
  const auto put = [&](int64_t y, int64_t x, int index) {
    if (index >= colours->ColorCount) return;
    const GifColorType& colour = colours->Colors[index];
    uint8_t* to = pixels.values.data() + 3 * (y * width + x);
    to[0] = colour.Red, to[1] = colour.Green, to[2] = colour.Blue;
  };
  pixels.values.resize(static_cast<size_t>(3 * height * width));
  std::vector<GifPixelType> row(static_cast<size_t>(picture.Width));
  for (const int y : stored_rows(picture.Height, picture.Interlace)) {
    if (DGifGetLine(gif.get(), row.data(), picture.Width) != GIF_OK) fail(name, " is a damaged or cut-off GIF file");
    for (int x = 0; x < picture.Width; ++x) put(picture.Top + y, picture.Left + x, row[static_cast<size_t>(x)]);
  }
  return pixels;
}

}  // namespace sparsight::engine
