#include "runtime/image_pixels.h"
#include "sparsight/engine/images/decode.h"

namespace sparsight::runtime {

bool decodes_image_files() { return true; }

engine::ByteImage decode_image(ByteView bytes, int64_t channels) {
  return engine::decode_byte_image(bytes, "the image", {.channels = static_cast<int>(channels)});
}

}  // namespace sparsight::runtime
