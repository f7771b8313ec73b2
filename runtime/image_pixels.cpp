#include "runtime/image_pixels.h"

#include "runtime/status.h"
#include "sparsight/core/limits.h"

namespace sparsight::runtime {

int64_t image_channels(const engine::Program& program) {
  const auto& preprocessing = program.info.preprocessing;
  const int64_t channels = preprocessing ? preprocessing->channels : 0;
  as_image_errors([&] {
    if (!preprocessing)
      fail("this model does not say how an image becomes its pixels; transform the image and classify the pixels");
    if (channels != 1 && channels != 3)
      fail("this model takes pixels of ", channels, " channels, which are not those of an image; classify the pixels");
  });
  return channels;
}

void check_image(const engine::InterleavedView& image) {
  require(image.bytes, "bytes");
  if (image.channels != 1 && image.channels != 3)
    fail_argument("an image of ", image.channels, " channels is not classified; give 1 (grey) or 3 (RGB)");
  if (image.height < 1 || image.width < 1 || image.height > kMaxImagePixels / image.width)
    fail_argument("an image of ", image.width, " x ", image.height,
                  " pixels is not classified; give at least 1 x 1 and ", "at most ", kMaxImagePixels, " pixels");
  if (image.row_stride < image.width * image.channels || image.row_stride > (int64_t{1} << 40))
    fail_argument("rows of ", image.width, " pixels of ", image.channels, " bytes are not ", image.row_stride,
                  " bytes apart; give row_bytes of at least ", image.width * image.channels);
}

}  // namespace sparsight::runtime
