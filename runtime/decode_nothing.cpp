// A library without decoders (SPARSIGHT_DECODE_IMAGES=OFF).
#include "runtime/image_pixels.h"
#include "sparsight/core/error.h"

namespace sparsight::runtime {

bool decodes_image_files() { return false; }

engine::ByteImage decode_image(ByteView, int64_t) {
  fail("this library was built without decoders of image files; decode the image and classify its bytes");
}

}  // namespace sparsight::runtime
