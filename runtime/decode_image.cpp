#include "runtime/image_pixels.h"
#include "runtime/status.h"
#include "sparsight/engine/images/decode.h"

namespace sparsight::runtime {

bool decodes_image_files() { return true; }

engine::ByteImage decode_image(ByteView bytes, int64_t channels) {
  engine::ByteImage image(0, 0, 0);
  as_image_errors(
      [&] { image = engine::decode_byte_image(bytes, "the image", {.channels = static_cast<int>(channels)}); });
  return image;
}

}  // namespace sparsight::runtime
