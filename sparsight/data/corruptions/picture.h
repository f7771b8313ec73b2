// An image as the corruptions change it: planes of floats in 0..1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sparsight::corruptions {

struct Picture {
  int64_t channels = 0, height = 0, width = 0;
  std::vector<float> values = {};  // [channels,height,width]

  Picture(int64_t c, int64_t h, int64_t w) : channels(c), height(h), width(w), values(static_cast<size_t>(c * h * w)) {}
  float& at(int64_t c, int64_t y, int64_t x) { return values[static_cast<size_t>((c * height + y) * width + x)]; }
  float at(int64_t c, int64_t y, int64_t x) const { return values[static_cast<size_t>((c * height + y) * width + x)]; }
  int64_t positions() const { return height * width; }
};

void clip(Picture& picture);  // to 0..1

// Where a position outside 0 .. size-1 lies when the image is mirrored at its border: with the border pixel once
// ("dcba|abcd") or not repeated ("dcb|abcd").
int64_t mirrored(int64_t position, int64_t size);
int64_t mirrored_inside(int64_t position, int64_t size);

// The positions -reach .. size + reach - 1, mirrored.
std::vector<int64_t> mirrored_line(int64_t size, int64_t reach, int64_t (*mirror)(int64_t, int64_t));

// The value at a place between pixels, bilinear; outside the image it is mirrored.
float sample(const Picture& picture, int64_t channel, double y, double x,
             int64_t (*mirror)(int64_t, int64_t) = mirrored);

// Gaussian blur with a kernel up to `truncate` sigmas, the image mirrored at its border; sigma 0: the image itself.
Picture gaussian_blurred(const Picture& picture, double sigma, double truncate = 4);

// The middle of the image, `factor` >= 1 times as large, cut to its size.
Picture zoomed(const Picture& picture, double factor);

// Means of shifted images along a line at `angle` degrees, weighted by half of a Gaussian.
Picture motion_blurred(const Picture& picture, int64_t radius, double sigma, double angle);

// 0.299 R + 0.587 G + 0.114 B; of one channel itself.
Picture grey(const Picture& picture);

}  // namespace sparsight::corruptions
