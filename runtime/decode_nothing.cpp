// A library without decoders (SPARSIGHT_DECODE_IMAGES=OFF).
#include "runtime/image_pixels.h"
#include "runtime/status.h"

namespace sparsight::runtime {

bool decodes_image_files() { return false; }

engine::ByteImage decode_image(ByteView, int64_t) {
  throw StatusError(SPARSIGHT_INFER_BAD_IMAGE,
                    "this library was built without decoders of image files; decode the image and classify its bytes");
}

}  // namespace sparsight::runtime
