#include "sparsight/data/readers/jpeg_write.h"

#include <turbojpeg.h>

#include <memory>

#include "sparsight/core/error.h"

namespace sparsight {

std::string encode_jpeg(const at::Tensor& image, int quality) {
  SPARSIGHT_CHECK(image.dim() == 3 && image.scalar_type() == at::kByte && (image.size(0) == 1 || image.size(0) == 3));
  SPARSIGHT_CHECK(image.size(1) > 0 && image.size(2) > 0 && quality >= 1 && quality <= 100);
  const at::Tensor rows = image.cpu().permute({1, 2, 0}).contiguous();  // [H,W,C]
  const bool colour = image.size(0) == 3;
  const std::unique_ptr<void, int (*)(void*)> compressor(tjInitCompress(), tjDestroy);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const bool written =
      compressor && tjCompress2(compressor.get(), rows.const_data_ptr<uint8_t>(), static_cast<int>(image.size(2)), 0,
                                static_cast<int>(image.size(1)), colour ? TJPF_RGB : TJPF_GRAY, &bytes, &size,
                                colour ? TJSAMP_420 : TJSAMP_GRAY, quality, TJFLAG_ACCURATEDCT) == 0;
  const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owner(bytes, tjFree);
  if (!written) fail("cannot write a JPEG file of ", image.size(2), " x ", image.size(1), " pixels");
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace sparsight
