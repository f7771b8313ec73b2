#include "bench/data/photograph.h"

#include <turbojpeg.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sparsight/core/random.h"
#include "sparsight/data/readers/image.h"

namespace sparsight {
namespace {

std::vector<uint8_t> photograph(int height, int width) {
  std::vector<uint8_t> pixels;
  RandomStream random(1, "bench");
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c) {
        const double shape = 128 + 70 * std::sin(x / (9.0 + c) + y / 31.0) + 40 * std::cos(y / 5.0 - x / 17.0);
        pixels.push_back(static_cast<uint8_t>(std::clamp(shape + random.uniform(-12, 12), 0.0, 255.0)));
      }
  const tjhandle encoder = tjInitCompress();
  unsigned char* data = nullptr;
  unsigned long size = 0;
  if (tjCompress2(encoder, pixels.data(), width, 0, height, TJPF_RGB, &data, &size, TJSAMP_420, 90, 0) != 0)
    throw std::runtime_error("cannot encode a JPEG");
  std::vector<uint8_t> bytes(data, data + size);
  tjFree(data);
  tjDestroy(encoder);
  return bytes;
}

}  // namespace

JpegSet::JpegSet(int height, int width) : bytes_(photograph(height, width)) {
  info_.classes.resize(10);
  info_.domains.resize(1);
}

Sample JpegSet::get(int64_t index) const {
  return {decode_image({bytes_.data(), bytes_.size()}, "bench.jpg", {3}), label(index), 0, {}, "bench.jpg"};
}

}  // namespace sparsight
