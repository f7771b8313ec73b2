#include "sparsight/data/readers/png_write.h"

#include <png.h>

#include "sparsight/core/error.h"

namespace sparsight {

std::string encode_png(const at::Tensor& image) {
  SPARSIGHT_CHECK(image.dim() == 3 && image.scalar_type() == at::kByte && (image.size(0) == 1 || image.size(0) == 3));
  SPARSIGHT_CHECK(image.size(1) > 0 && image.size(2) > 0);
  const at::Tensor rows = image.cpu().permute({1, 2, 0}).contiguous();  // [H,W,C]
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.size(2));
  header.height = static_cast<png_uint_32>(image.size(1));
  header.format = image.size(0) == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  std::string bytes(PNG_IMAGE_PNG_SIZE_MAX(header), '\0');
  png_alloc_size_t size = bytes.size();
  if (!png_image_write_to_memory(&header, bytes.data(), &size, 0, rows.const_data_ptr<uint8_t>(), 0, nullptr))
    fail("cannot write a PNG file of ", image.size(2), " x ", image.size(1), " pixels: ", header.message);
  bytes.resize(size);
  return bytes;
}

}  // namespace sparsight
