#include "sparsight/engine/preprocess.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sparsight/core/error.h"
#include "sparsight/engine/resize_bytes.h"

namespace sparsight::engine {
namespace {

constexpr int64_t kMaxPixels = 100'000'000;

ByteImage resized(const ByteImageView& image, int64_t height, int64_t width, bool bicubic) {
  // The limit holds for the result and for what is resized along x only.
  if (std::max(height, image.height) > kMaxPixels / width || image.width > kMaxPixels / 64)
    fail("resizing a ", image.width, "x", image.height, " image to ", width, "x", height,
         " would make more than 100 million pixels; crop it first");
  ByteImage out(image.channels, height, width);
  resize_bytes(image, height, width, bicubic, out.bytes.data());
  return out;
}

ByteImageView cropped(ByteImageView image, int64_t height, int64_t width) {
  image.bytes += (image.height - height) / 2 * image.row_stride + (image.width - width) / 2;
  image.height = height, image.width = width;
  return image;
}

// An image between two steps: a view, of the caller's bytes or of its own.
struct Current {
  ByteImageView view;
  ByteImage own = {0, 0, 0};
  void set(ByteImage image) {
    own = std::move(image);
    view = own.view();
  }
};

void resize(Current& image, int64_t height, int64_t width, bool bicubic) {
  if (image.view.height != height || image.view.width != width) image.set(resized(image.view, height, width, bicubic));
}

int64_t scaled(int64_t side, double scale) {
  return std::max<int64_t>(1, std::llround(static_cast<double>(side) * scale));
}

void apply(const PreprocessStep& step, Current& image) {
  const int64_t shorter = std::min(image.view.height, image.view.width);
  if (step.kind == PreprocessStep::Kind::center_crop) {
    const int64_t side = step.height > 0 ? step.height : shorter;
    if (shorter < side)
      fail("center_crop needs images of at least ", side, "x", side, " pixels, got ", image.view.height, "x",
           image.view.width);
    image.view = cropped(image.view, side, side);
  } else if (step.width > 0) {
    resize(image, step.height, step.width, step.bicubic);
  } else {
    const double scale = static_cast<double>(step.height) / static_cast<double>(shorter);
    resize(image, scaled(image.view.height, scale), scaled(image.view.width, scale), step.bicubic);
  }
}

}  // namespace

bool Preprocessing::run(const ByteImageView& given, float* pixels) const {
  const auto fail_shape = [&] {
    fail("the image of ", given.width, "x", given.height, " pixels and ", given.channels,
         " channels is not transformed to the ", width, "x", height, " pixels and ", channels,
         " channels that the model takes; resize it, or train with a resize in [transforms] eval");
  };
  if (given.channels != channels || given.height < 1 || given.width < 1) fail_shape();
  const bool own_size = given.height == height && given.width == width;
  const auto fits = [&](const Current& image) { return image.view.height == height && image.view.width == width; };
  Current image{given};
  bool fell_back = false;
  try {
    for (const PreprocessStep& step : steps) apply(step, image);
  } catch (const Error&) {  // a crop of more pixels than there are
    if (own_size) throw;
    image.view.height = 0;
  }
  if (!fits(image) && !own_size) {
    image.view = given;
    const double scale = std::max(static_cast<double>(height) / static_cast<double>(given.height),
                                  static_cast<double>(width) / static_cast<double>(given.width));
    resize(image, std::max(height, scaled(given.height, scale)), std::max(width, scaled(given.width, scale)), false);
    image.view = cropped(image.view, height, width);
    for (const PreprocessStep& step : steps) apply(step, image);
    fell_back = true;
  }
  if (!fits(image)) fail_shape();
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t y = 0; y < height; ++y) {
      const uint8_t* const row = image.view.bytes + c * image.view.plane_stride + y * image.view.row_stride;
      for (int64_t x = 0; x < width; ++x) {
        const auto byte = static_cast<float>(row[x]);
        *pixels++ = divides ? byte / 255 : byte * (1.F / 255);
      }
    }
  return fell_back;
}

}  // namespace sparsight::engine
