#include "sparsight/data/corruptions/picture.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace sparsight::corruptions {
namespace {

std::vector<double> gaussian_kernel(double sigma, double truncate) {
  const auto radius = static_cast<int64_t>(truncate * sigma + 0.5);
  std::vector<double> kernel;
  double sum = 0;
  for (int64_t i = -radius; i <= radius; ++i) {
    kernel.push_back(std::exp(-0.5 * static_cast<double>(i * i) / (sigma * sigma)));
    sum += kernel.back();
  }
  for (double& weight : kernel) weight /= sum;
  return kernel;
}

// The image moved by whole pixels, its border repeated.
void add_shifted(Picture& sum, const Picture& picture, int64_t dx, int64_t dy, double weight) {
  for (int64_t c = 0; c < picture.channels; ++c)
    for (int64_t y = 0; y < picture.height; ++y) {
      const int64_t from_y = std::clamp<int64_t>(y - dy, 0, picture.height - 1);
      for (int64_t x = 0; x < picture.width; ++x)
        sum.at(c, y, x) +=
            static_cast<float>(weight) * picture.at(c, from_y, std::clamp<int64_t>(x - dx, 0, picture.width - 1));
    }
}

}  // namespace

void clip(Picture& picture) {
  for (float& value : picture.values) value = std::clamp(value, 0.0F, 1.0F);
}

int64_t mirrored(int64_t position, int64_t size) {
  const int64_t period = 2 * size;
  const int64_t inside = ((position % period) + period) % period;
  return inside < size ? inside : period - 1 - inside;
}

int64_t mirrored_inside(int64_t position, int64_t size) {
  if (size == 1) return 0;
  const int64_t period = 2 * (size - 1);
  const int64_t inside = ((position % period) + period) % period;
  return inside < size ? inside : period - inside;
}

float sample(const Picture& picture, int64_t channel, double y, double x, int64_t (*mirror)(int64_t, int64_t)) {
  const double top = std::floor(y), left = std::floor(x);
  const double down = y - top, right = x - left;
  const int64_t y0 = mirror(static_cast<int64_t>(top), picture.height),
                y1 = mirror(static_cast<int64_t>(top) + 1, picture.height),
                x0 = mirror(static_cast<int64_t>(left), picture.width),
                x1 = mirror(static_cast<int64_t>(left) + 1, picture.width);
  const double above = (1 - right) * picture.at(channel, y0, x0) + right * picture.at(channel, y0, x1);
  const double below = (1 - right) * picture.at(channel, y1, x0) + right * picture.at(channel, y1, x1);
  return static_cast<float>((1 - down) * above + down * below);
}

std::vector<int64_t> mirrored_line(int64_t size, int64_t reach, int64_t (*mirror)(int64_t, int64_t)) {
  std::vector<int64_t> line;
  for (int64_t i = -reach; i < size + reach; ++i) line.push_back(mirror(i, size));
  return line;
}

Picture gaussian_blurred(const Picture& picture, double sigma, double truncate) {
  if (sigma <= 0) return picture;
  const std::vector<double> kernel = gaussian_kernel(sigma, truncate);
  const auto reach = static_cast<int64_t>(kernel.size() / 2);
  const auto blur = [&](const Picture& from, bool down) {
    const int64_t size = down ? from.height : from.width, others = down ? from.width : from.height;
    const std::vector<int64_t> line = mirrored_line(size, reach, mirrored);
    std::vector<double> values(line.size());
    Picture to(from.channels, from.height, from.width);
    for (int64_t c = 0; c < from.channels; ++c)
      for (int64_t other = 0; other < others; ++other) {
        for (size_t i = 0; i < line.size(); ++i)
          values[i] = down ? from.at(c, line[i], other) : from.at(c, other, line[i]);
        for (int64_t i = 0; i < size; ++i) {
          const double sum = std::inner_product(kernel.begin(), kernel.end(), values.begin() + i, 0.0);
          (down ? to.at(c, i, other) : to.at(c, other, i)) = static_cast<float>(sum);
        }
      }
    return to;
  };
  return blur(blur(picture, true), false);
}

Picture zoomed(const Picture& picture, double factor) {
  const auto part = [factor](int64_t size) {
    return static_cast<int64_t>(std::ceil(static_cast<double>(size) / factor));
  };
  const int64_t height = part(picture.height), width = part(picture.width);
  const int64_t top = (picture.height - height) / 2, left = (picture.width - width) / 2;
  const auto zoomed_height = std::llround(static_cast<double>(height) * factor),
             zoomed_width = std::llround(static_cast<double>(width) * factor);
  // The corners of the part are those of the zoomed image.
  const auto step = [](int64_t from, int64_t to) {
    return to > 1 ? static_cast<double>(from - 1) / static_cast<double>(to - 1) : 0.0;
  };
  const double step_y = step(height, zoomed_height), step_x = step(width, zoomed_width);
  Picture large(picture.channels, picture.height, picture.width);
  for (int64_t c = 0; c < picture.channels; ++c)
    for (int64_t y = 0; y < picture.height; ++y)
      for (int64_t x = 0; x < picture.width; ++x)
        large.at(c, y, x) = sample(picture, c, static_cast<double>(top) + static_cast<double>(y) * step_y,
                                   static_cast<double>(left) + static_cast<double>(x) * step_x);
  return large;
}

Picture motion_blurred(const Picture& picture, int64_t radius, double sigma, double angle) {
  const int64_t width = 2 * radius + 1;
  const double radians = angle * std::numbers::pi / 180;
  std::vector<double> kernel;
  double sum = 0;
  for (int64_t i = 0; i < width; ++i) {
    kernel.push_back(std::exp(-static_cast<double>(i * i) / (2 * sigma * sigma)));
    sum += kernel.back();
  }
  Picture blurred(picture.channels, picture.height, picture.width);
  for (int64_t i = 0; i < width; ++i) {
    const auto along = static_cast<double>(i);
    const auto dy = -static_cast<int64_t>(std::ceil(along * std::sin(radians) - 0.5)),
               dx = -static_cast<int64_t>(std::ceil(along * std::cos(radians) - 0.5));
    if (std::abs(dy) >= picture.height || std::abs(dx) >= picture.width) break;
    add_shifted(blurred, picture, dx, dy, kernel[static_cast<size_t>(i)] / sum);
  }
  return blurred;
}

Picture grey(const Picture& picture) {
  if (picture.channels < 3) return picture;
  Picture luma(1, picture.height, picture.width);
  for (int64_t y = 0; y < picture.height; ++y)
    for (int64_t x = 0; x < picture.width; ++x)
      luma.at(0, y, x) = 0.299F * picture.at(0, y, x) + 0.587F * picture.at(1, y, x) + 0.114F * picture.at(2, y, x);
  return luma;
}

}  // namespace sparsight::corruptions
