// Contrast, elastic deformation, pixels and compression.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include <turbojpeg.h>

#include "sparsight/core/error.h"
#include "sparsight/data/corruptions/corruptions.h"

namespace sparsight::corruptions {
namespace {

constexpr float kContrast[2][kSeverities] = {{.4F, .3F, .2F, .1F, .05F}, {.75F, .5F, .4F, .3F, .15F}};
// In widths of the image: how far pixels move, over which distance the moves are smooth, how far corners move.
struct Elastic {
  double move, smooth, corner;
};
constexpr Elastic kElastic[2][kSeverities] = {
    {{488 / 244., 170.8 / 244., .1}, {488 / 244., 19.52 / 244., .2}, {.05, .01, .02}, {.07, .01, .02}, {.12, .01, .02}},
    {{0, 0, .08}, {.05, .2, .07}, {.08, .06, .06}, {.1, .04, .05}, {.1, .03, .03}}};
constexpr double kPixelate[2][kSeverities] = {{.6, .5, .4, .3, .25}, {.95, .9, .85, .75, .65}};
constexpr int kQuality[2][kSeverities] = {{25, 18, 15, 10, 7}, {80, 65, 58, 50, 40}};

using Point = std::array<double, 2>;

// The affine map that takes three points `to` back to `from`, as rows of a 2x3 matrix.
std::array<std::array<double, 3>, 2> affine_back(const std::array<Point, 3>& from, const std::array<Point, 3>& to) {
  const double ax = to[1][0] - to[0][0], ay = to[1][1] - to[0][1], bx = to[2][0] - to[0][0], by = to[2][1] - to[0][1];
  const double determinant = ax * by - bx * ay;
  std::array<std::array<double, 3>, 2> map{};
  for (size_t i = 0; i < 2; ++i) {
    const double a = from[1][i] - from[0][i], b = from[2][i] - from[0][i];
    map[i][0] = (a * by - b * ay) / determinant;
    map[i][1] = (b * ax - a * bx) / determinant;
    map[i][2] = from[0][i] - map[i][0] * to[0][0] - map[i][1] * to[0][1];
  }
  return map;
}

// The middle of the image, of which three corners of a square move at random.
Picture sheared(const Picture& picture, double corner, RandomStream& random) {
  const double middle_y = std::floor(static_cast<double>(picture.height) / 2),
               middle_x = std::floor(static_cast<double>(picture.width) / 2),
               side = std::floor(static_cast<double>(std::min(picture.height, picture.width)) / 3);
  const std::array<Point, 3> from{Point{middle_x + side, middle_y + side}, Point{middle_x + side, middle_y - side},
                                  Point{middle_x - side, middle_y - side}};
  std::array<Point, 3> to = from;
  for (Point& point : to)
    for (double& coordinate : point) coordinate += random.uniform(-corner, corner);
  const auto back = affine_back(from, to);
  Picture moved(picture.channels, picture.height, picture.width);
  for (int64_t c = 0; c < picture.channels; ++c)
    for (int64_t y = 0; y < picture.height; ++y)
      for (int64_t x = 0; x < picture.width; ++x) {
        const auto at = [&](size_t i) {
          return back[i][0] * static_cast<double>(x) + back[i][1] * static_cast<double>(y) + back[i][2];
        };
        moved.at(c, y, x) = sample(picture, c, at(1), at(0), mirrored_inside);
      }
  return moved;
}

Picture smooth_moves(const Picture& picture, double move, double smooth, RandomStream& random) {
  Picture field(1, picture.height, picture.width);
  for (float& value : field.values) value = static_cast<float>(random.uniform(-1, 1));
  field = gaussian_blurred(field, smooth, 3);
  for (float& value : field.values) value *= static_cast<float>(move);
  return field;
}

// Pillow's box filter along one axis: the mean of the pixels whose centres lie in the box, rounded to levels.
Picture box_resized(const Picture& picture, int64_t size, bool down) {
  const int64_t before = down ? picture.height : picture.width, others = down ? picture.width : picture.height;
  Picture resized(picture.channels, down ? size : picture.height, down ? picture.width : size);
  const double scale = static_cast<double>(before) / static_cast<double>(size), width = std::max(scale, 1.0);
  for (int64_t i = 0; i < size; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const auto lies_in_box = [&](int64_t j) {
      const double offset = (static_cast<double>(j) + 0.5 - centre) / width;
      return offset > -0.5 && offset <= 0.5;
    };
    auto first = std::max<int64_t>(0, static_cast<int64_t>(centre - width / 2)), last = first;
    while (first < before - 1 && !lies_in_box(first)) ++first;
    for (last = first; last < before && lies_in_box(last);) ++last;
    for (int64_t c = 0; c < picture.channels; ++c)
      for (int64_t other = 0; other < others; ++other) {
        double sum = 0;
        for (int64_t j = first; j < last; ++j) sum += down ? picture.at(c, j, other) : picture.at(c, other, j);
        const double level = std::floor(255 * sum / static_cast<double>(last - first) + 0.5);
        (down ? resized.at(c, i, other) : resized.at(c, other, i)) = static_cast<float>(level / 255);
      }
  }
  return resized;
}

// A file in memory that TurboJPEG allocates.
struct Encoded {
  Encoded() = default;
  Encoded(const Encoded&) = delete;
  Encoded& operator=(const Encoded&) = delete;
  ~Encoded() { tjFree(bytes); }
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
};

}  // namespace

Picture contrast(const Picture& picture, int severity, bool small, RandomStream&) {
  Picture flat = picture;
  const auto plane = static_cast<size_t>(picture.positions());
  for (size_t first = 0; first < flat.values.size(); first += plane) {
    double sum = 0;
    for (size_t i = 0; i < plane; ++i) sum += flat.values[first + i];
    const auto mean = static_cast<float>(sum / static_cast<double>(plane));
    for (size_t i = 0; i < plane; ++i) {
      float& value = flat.values[first + i];
      value = (value - mean) * kContrast[small][severity] + mean;
    }
  }
  return flat;
}

Picture elastic_transform(const Picture& picture, int severity, bool small, RandomStream& random) {
  const Elastic& elastic = kElastic[small][severity];
  // ImageNet-C means images of 244 pixels, but has 224.
  const double side = static_cast<double>(std::min(picture.height, picture.width)) * (small ? 1 : 244. / 224);
  const Picture sheared_picture = sheared(picture, elastic.corner * side, random);
  const Picture dx = smooth_moves(picture, elastic.move * side, elastic.smooth * side, random),
                dy = smooth_moves(picture, elastic.move * side, elastic.smooth * side, random);
  Picture moved(picture.channels, picture.height, picture.width);
  for (int64_t c = 0; c < picture.channels; ++c)
    for (int64_t y = 0; y < picture.height; ++y)
      for (int64_t x = 0; x < picture.width; ++x)
        moved.at(c, y, x) = sample(sheared_picture, c, static_cast<double>(y) + dy.at(0, y, x),
                                   static_cast<double>(x) + dx.at(0, y, x));
  return moved;
}

Picture pixelate(const Picture& picture, int severity, bool small, RandomStream&) {
  const auto coarse = [&](int64_t size) {
    return std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(size) * kPixelate[small][severity]));
  };
  const Picture pixels = box_resized(box_resized(picture, coarse(picture.width), false), coarse(picture.height), true);
  return box_resized(box_resized(pixels, picture.width, false), picture.height, true);
}

Picture jpeg_compression(const Picture& picture, int severity, bool small, RandomStream&) {
  const bool colour = picture.channels == 3;
  if (!colour && picture.channels != 1)
    fail("jpeg_compression is for images of 1 or 3 channels, these have ", picture.channels);
  std::vector<uint8_t> bytes(picture.values.size());
  for (int64_t c = 0; c < picture.channels; ++c)
    for (int64_t p = 0; p < picture.positions(); ++p)
      bytes[static_cast<size_t>(p * picture.channels + c)] = static_cast<uint8_t>(
          std::clamp(picture.values[static_cast<size_t>(c * picture.positions() + p)], 0.0F, 1.0F) * 255 + 0.5F);
  const std::unique_ptr<void, int (*)(void*)> compressor(tjInitCompress(), tjDestroy);
  Encoded encoded;
  if (!compressor ||
      tjCompress2(compressor.get(), bytes.data(), static_cast<int>(picture.width), 0, static_cast<int>(picture.height),
                  colour ? TJPF_RGB : TJPF_GRAY, &encoded.bytes, &encoded.size, colour ? TJSAMP_420 : TJSAMP_GRAY,
                  kQuality[small][severity], TJFLAG_ACCURATEDCT) != 0)
    fail("an image could not be compressed as JPEG");
  const std::unique_ptr<void, int (*)(void*)> decompressor(tjInitDecompress(), tjDestroy);
  if (!decompressor ||
      tjDecompress2(decompressor.get(), encoded.bytes, encoded.size, bytes.data(), static_cast<int>(picture.width), 0,
                    static_cast<int>(picture.height), colour ? TJPF_RGB : TJPF_GRAY, TJFLAG_ACCURATEDCT) != 0)
    fail("a compressed image could not be read again");
  Picture compressed(picture.channels, picture.height, picture.width);
  for (int64_t c = 0; c < picture.channels; ++c)
    for (int64_t p = 0; p < picture.positions(); ++p)
      compressed.values[static_cast<size_t>(c * picture.positions() + p)] =
          static_cast<float>(bytes[static_cast<size_t>(p * picture.channels + c)]) / 255;
  return compressed;
}

}  // namespace sparsight::corruptions
