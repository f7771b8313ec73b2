#include <tiffio.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/engine/images/pixels.h"

namespace sparsight::engine {
namespace {

struct TiffState {
  ByteView bytes;
  toff_t at = 0;
  std::string message;
};

TiffState& to_state(thandle_t handle) { return *static_cast<TiffState*>(handle); }

tmsize_t read_tiff_bytes(thandle_t handle, void* out, tmsize_t length) {
  TiffState& state = to_state(handle);
  const size_t begin = std::min<toff_t>(state.at, state.bytes.size());
  const size_t count = std::min(state.bytes.size() - begin, static_cast<size_t>(std::max<tmsize_t>(length, 0)));
  std::memcpy(out, state.bytes.data() + begin, count);
  state.at += count;
  return static_cast<tmsize_t>(count);
}

tmsize_t write_nothing(thandle_t, void*, tmsize_t) { return 0; }

toff_t seek_tiff(thandle_t handle, toff_t offset, int whence) {
  TiffState& state = to_state(handle);
  return state.at = offset + (whence == SEEK_CUR ? state.at : whence == SEEK_END ? state.bytes.size() : 0);
}

int close_nothing(thandle_t) { return 0; }
toff_t tiff_size(thandle_t handle) { return to_state(handle).bytes.size(); }

int keep_error(TIFF*, void* state, const char*, const char* format, va_list arguments) {
  char text[160];
  std::vsnprintf(text, sizeof text, format, arguments);
  static_cast<TiffState*>(state)->message = text;
  return 1;  // handled
}

int ignore_warning(TIFF*, void*, const char*, const char*, va_list) { return 1; }

using TiffFile = std::unique_ptr<TIFF, decltype(&TIFFClose)>;

TiffFile open_tiff(TiffState& state) {
  const std::unique_ptr<TIFFOpenOptions, decltype(&TIFFOpenOptionsFree)> options(TIFFOpenOptionsAlloc(),
                                                                                 TIFFOpenOptionsFree);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), keep_error, &state);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), ignore_warning, nullptr);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), tmsize_t{4} * kMaxImagePixels);
  return {TIFFClientOpenExt("image", "rm", &state, read_tiff_bytes, write_nothing, seek_tiff, close_nothing, tiff_size,
                            nullptr, nullptr, options.get()),
          TIFFClose};
}

}  // namespace

Pixels decode_tiff(ByteView bytes, const std::string& name, int64_t max_pixels) {
  TiffState state{bytes, 0, "no picture in it"};
  const auto damaged = [&] {
    fail(name, " is a damaged TIFF file or of a kind that is not read (", printable(state.message), ")");
  };
  const TiffFile tiff = open_tiff(state);
  if (!tiff) damaged();
  uint32_t width = 0, height = 0;
  uint16_t orientation = ORIENTATION_TOPLEFT;
  TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height);
  TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_ORIENTATION, &orientation);
  check_image_size(height, width, max_pixels, name);

  TIFFRGBAImage image;
  char reason[1024] = "";
  if (!TIFFRGBAImageOK(tiff.get(), reason) || !TIFFRGBAImageBegin(&image, tiff.get(), /*stop on error*/ 1, reason)) {
    state.message = reason;
    damaged();
  }
  const std::unique_ptr<TIFFRGBAImage, decltype(&TIFFRGBAImageEnd)> ended(&image, TIFFRGBAImageEnd);
  image.orientation = image.req_orientation = ORIENTATION_TOPLEFT;  // as it is stored
  const bool grey = image.photometric == PHOTOMETRIC_MINISBLACK || image.photometric == PHOTOMETRIC_MINISWHITE;
  std::vector<uint32_t> raster(static_cast<size_t>(width) * height);
  if (!TIFFRGBAImageGet(&image, raster.data(), width, height)) damaged();

  Pixels pixels{height, width, grey ? 1 : 3, orientation >= 1 && orientation <= 8 ? orientation : 1, {}};
  pixels.values.resize(raster.size() * static_cast<size_t>(pixels.channels));
  uint8_t* to = pixels.values.data();
  for (const uint32_t pixel : raster) {
    *to++ = TIFFGetR(pixel);
    if (!grey) *to++ = TIFFGetG(pixel), *to++ = TIFFGetB(pixel);
  }
  return pixels;
}

}  // namespace sparsight::engine
