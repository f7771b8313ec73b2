// libpng leaves a failing call by longjmp, which skips C++ destructors. So everything with a destructor is in
// decode_png(), and the functions that call setjmp have plain values only.
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <memory>
#include <string>

#include "sparsight/core/error.h"
#include "sparsight/engine/images/exif.h"
#include "sparsight/engine/images/pixels.h"

namespace sparsight::engine {
namespace {

struct PngState {
  png_structp png = nullptr;
  png_infop info = nullptr;
  const uint8_t* data = nullptr;
  size_t left = 0;
  uint32_t width = 0, height = 0;
  int channels = 0;
  char message[160] = "";

  ~PngState() { png_destroy_read_struct(&png, &info, nullptr); }
};

[[noreturn]] void on_png_error(png_structp png, png_const_charp message) {
  auto* state = static_cast<PngState*>(png_get_error_ptr(png));
  std::strncpy(state->message, message, sizeof state->message - 1);
  png_longjmp(png, 1);
}

void on_png_warning(png_structp, png_const_charp) {}

void read_png_bytes(png_structp png, png_bytep out, size_t length) {
  auto* state = static_cast<PngState*>(png_get_io_ptr(png));
  if (length > state->left) png_error(png, "the file ends early");
  std::memcpy(out, state->data, length);
  state->data += length;
  state->left -= length;
}

bool read_png_header(PngState& state) {
  if (setjmp(png_jmpbuf(state.png))) return false;
  png_set_read_fn(state.png, &state, read_png_bytes);
  png_set_user_limits(state.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // check_image_size() has clearer errors
  png_set_chunk_malloc_max(state.png, 8 << 20);
  png_set_chunk_cache_max(state.png, 64);
  png_read_info(state.png, state.info);
  state.width = png_get_image_width(state.png, state.info);
  state.height = png_get_image_height(state.png, state.info);
  return true;
}

// Requests 8-bit grey or RGB rows. Allocates memory for a row.
bool prepare_png(PngState& state) {
  if (setjmp(png_jmpbuf(state.png))) return false;
  png_set_expand(state.png);  // palette to RGB, less than 8 bits to 8, a transparent colour to alpha
  png_set_scale_16(state.png);
  png_set_strip_alpha(state.png);
  png_set_interlace_handling(state.png);
  png_read_update_info(state.png, state.info);
  state.channels = png_get_channels(state.png, state.info);
  return true;
}

bool read_png_rows(PngState& state, png_bytepp rows) {
  if (setjmp(png_jmpbuf(state.png))) return false;
  png_read_image(state.png, rows);
  png_read_end(state.png, state.info);
  return true;
}

}  // namespace

Pixels decode_png(ByteView bytes, const std::string& name, int64_t max_pixels) {
  PngState state;
  state.data = bytes.data();
  state.left = bytes.size();
  state.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &state, on_png_error, on_png_warning);
  if (state.png) state.info = png_create_info_struct(state.png);
  if (!state.info) fail(name, ": not enough memory to decode");
  if (!read_png_header(state)) fail(name, " is a damaged PNG file (", printable(state.message), ")");
  check_image_size(state.height, state.width, max_pixels, name);
  if (!prepare_png(state)) fail(name, " is a damaged PNG file (", printable(state.message), ")");
  Pixels pixels{state.height, state.width, state.channels, 1, {}};
  const size_t row_bytes = png_get_rowbytes(state.png, state.info);
  SPARSIGHT_CHECK((state.channels == 1 || state.channels == 3) &&
                  row_bytes == state.width * static_cast<size_t>(state.channels));
  pixels.values.resize(row_bytes * state.height);
  std::vector<png_bytep> rows(state.height);
  for (size_t y = 0; y < rows.size(); ++y) rows[y] = pixels.values.data() + y * row_bytes;
  if (!read_png_rows(state, rows.data()))
    fail(name, " is a damaged or cut-off PNG file (", printable(state.message), ")");
  png_uint_32 length = 0;
  png_bytep exif = nullptr;
  if (png_get_eXIf_1(state.png, state.info, &length, &exif)) pixels.orientation = exif_orientation({exif, length});
  return pixels;
}

}  // namespace sparsight::engine
