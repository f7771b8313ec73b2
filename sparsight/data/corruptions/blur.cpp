// Blur of a lens, of frosted glass, of a camera that moves or comes closer.
#include <algorithm>
#include <cmath>
#include <utility>

#include "sparsight/data/corruptions/corruptions.h"

namespace sparsight::corruptions {
namespace {

struct Disk {
  double radius, antialias;
};
constexpr Disk kDisks[2][kSeverities] = {{{3, .1}, {4, .5}, {6, .5}, {8, .5}, {10, .5}},
                                         {{.3, .4}, {.4, .5}, {.5, .6}, {1, .2}, {1.5, .1}}};
struct Glass {
  double sigma;
  int64_t distance;
  int rounds;
};
constexpr Glass kGlass[2][kSeverities] = {{{.7, 1, 2}, {.9, 2, 1}, {1, 2, 3}, {1.1, 3, 2}, {1.5, 4, 2}},
                                          {{.05, 1, 1}, {.25, 1, 1}, {.4, 1, 1}, {.25, 1, 2}, {.4, 1, 2}}};
struct Motion {
  int64_t radius;
  double sigma;
};
constexpr Motion kMotion[2][kSeverities] = {{{10, 3}, {15, 5}, {15, 8}, {15, 12}, {20, 15}},
                                            {{6, 1}, {6, 1.5}, {6, 2}, {8, 2}, {9, 2.5}}};
struct Zoom {
  int steps;
  double step;
};  // factors 1, 1 + step, ...
constexpr Zoom kZoom[2][kSeverities] = {{{12, .01}, {16, .01}, {11, .02}, {13, .02}, {11, .03}},
                                        {{7, .01}, {12, .01}, {16, .01}, {21, .01}, {26, .01}}};

// A disk of ones, blurred over 3x3 or 5x5 pixels, sums to 1: [2r+1][2r+1].
Picture disk_kernel(const Disk& disk) {
  const auto radius = static_cast<int64_t>(std::max(8.0, disk.radius));
  const int64_t side = 2 * radius + 1, reach = disk.radius <= 8 ? 1 : 2;
  Picture plain(1, side, side), smooth(1, side, side);
  double sum = 0;
  for (int64_t y = -radius; y <= radius; ++y)
    for (int64_t x = -radius; x <= radius; ++x)
      if (static_cast<double>(x * x + y * y) <= disk.radius * disk.radius) {
        plain.at(0, y + radius, x + radius) = 1;
        ++sum;
      }
  double weights = 0;
  std::vector<double> kernel;
  for (int64_t i = -reach; i <= reach; ++i) {
    kernel.push_back(std::exp(-static_cast<double>(i * i) / (2 * disk.antialias * disk.antialias)));
    weights += kernel.back();
  }
  for (int64_t y = 0; y < side; ++y)
    for (int64_t x = 0; x < side; ++x)
      for (int64_t i = -reach; i <= reach; ++i)
        for (int64_t j = -reach; j <= reach; ++j)
          smooth.at(0, y, x) += static_cast<float>(
              kernel[static_cast<size_t>(i + reach)] * kernel[static_cast<size_t>(j + reach)] / (weights * weights) *
              plain.at(0, mirrored_inside(y + i, side), mirrored_inside(x + j, side)) / sum);
  return smooth;
}

// To bytes and back, downwards.
void quantise(Picture& picture) {
  for (float& value : picture.values) value = std::floor(value * 255) / 255;
}

}  // namespace

Picture defocus_blur(const Picture& picture, int severity, bool small, RandomStream&) {
  const Picture kernel = disk_kernel(kDisks[small][severity]);
  const int64_t radius = kernel.height / 2;
  const std::vector<int64_t> rows = mirrored_line(picture.height, radius, mirrored_inside),
                             columns = mirrored_line(picture.width, radius, mirrored_inside);
  Picture blurred(picture.channels, picture.height, picture.width);
  for (int64_t i = -radius; i <= radius; ++i)
    for (int64_t j = -radius; j <= radius; ++j) {
      const float weight = kernel.at(0, i + radius, j + radius);
      if (weight == 0) continue;
      for (int64_t c = 0; c < picture.channels; ++c)
        for (int64_t y = 0; y < picture.height; ++y) {
          const int64_t from = rows[static_cast<size_t>(y + i + radius)];
          for (int64_t x = 0; x < picture.width; ++x)
            blurred.at(c, y, x) += weight * picture.at(c, from, columns[static_cast<size_t>(x + j + radius)]);
        }
    }
  return blurred;
}

// Differs from the paper: it speaks of exchanged pixels; its code, and this, copies one onto the other.
Picture glass_blur(const Picture& picture, int severity, bool small, RandomStream& random) {
  const Glass& glass = kGlass[small][severity];
  const int64_t d = glass.distance;
  Picture shuffled = gaussian_blurred(picture, glass.sigma);
  quantise(shuffled);
  for (int round = 0; round < glass.rounds; ++round)
    for (int64_t y = shuffled.height - d; y > d; --y)
      for (int64_t x = shuffled.width - d; x > d; --x) {
        const int64_t from_x = x + random.below(2 * d) - d, from_y = y + random.below(2 * d) - d;
        for (int64_t c = 0; c < shuffled.channels; ++c) shuffled.at(c, y, x) = shuffled.at(c, from_y, from_x);
      }
  return gaussian_blurred(shuffled, glass.sigma);
}

Picture motion_blur(const Picture& picture, int severity, bool small, RandomStream& random) {
  const Motion& motion = kMotion[small][severity];
  return motion_blurred(picture, motion.radius, motion.sigma, random.uniform(-45, 45));
}

Picture zoom_blur(const Picture& picture, int severity, bool small, RandomStream&) {
  const Zoom& zoom = kZoom[small][severity];
  Picture sum = picture;
  for (int i = 0; i < zoom.steps; ++i) {
    const Picture layer = zoomed(picture, 1 + i * zoom.step);
    for (size_t v = 0; v < sum.values.size(); ++v) sum.values[v] += layer.values[v];
  }
  for (float& value : sum.values) value /= static_cast<float>(zoom.steps + 1);
  return sum;
}

}  // namespace sparsight::corruptions
