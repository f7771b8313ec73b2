#include "sparsight/data/readers/image.h"

#include <utility>

#include "sparsight/data/readers/bytes.h"

namespace sparsight {
namespace {

at::Tensor as_tensor(engine::ByteImage image) {
  const int64_t sizes[] = {image.channels, image.height, image.width};
  return adopt(std::move(image.bytes), 0, sizes);
}

}  // namespace

at::Tensor decode_image(ByteView bytes, const std::string& name, const ImageDecoding& decoding) {
  return as_tensor(engine::decode_byte_image(bytes, name, decoding));
}

at::Tensor read_image(const std::string& path, const ImageDecoding& decoding) {
  return as_tensor(engine::read_byte_image(path, decoding));
}

}  // namespace sparsight
