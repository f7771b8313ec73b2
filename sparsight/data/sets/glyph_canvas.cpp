#include "sparsight/data/sets/glyph_canvas.h"

#include <algorithm>
#include <cmath>

namespace sparsight {
namespace {

constexpr float kFar = 1e9f;
constexpr int kCurveSegments = 6;

int64_t clamp_pixel(float value, int64_t side) {  // value may be far out of range
  if (!(value > 0)) return 0;
  if (value >= static_cast<float>(side)) return side;
  return static_cast<int64_t>(value);
}

uint8_t to_byte(float value) { return static_cast<uint8_t>(std::min(std::max(value, 0.f), 255.f) + 0.5f); }

}  // namespace

GlyphNode GlyphPose::operator()(const GlyphNode& node) const {
  return {a * node.x + b * node.y + tx, c * node.x + d * node.y + ty, node.control};
}

GlyphCanvas::GlyphCanvas(int64_t side) : side_(side), planes_(3 * side * side), distance_(side * side) {}

void GlyphCanvas::add_segment(float ax, float ay, float bx, float by, float reach) {
  const int64_t left = clamp_pixel(std::min(ax, bx) - reach, side_),
                right = clamp_pixel(std::max(ax, bx) + reach + 1, side_);
  const int64_t top = clamp_pixel(std::min(ay, by) - reach, side_),
                bottom = clamp_pixel(std::max(ay, by) + reach + 1, side_);
  const float dx = bx - ax, dy = by - ay, length = dx * dx + dy * dy;
  const float inverse = length > 0 ? 1 / length : 0;
  for (int64_t y = top; y < bottom; ++y) {
    float* row = distance_.data() + y * side_;
    const float py = static_cast<float>(y) + 0.5f - ay;
    for (int64_t x = left; x < right; ++x) {
      const float px = static_cast<float>(static_cast<int32_t>(x)) + 0.5f - ax;
      float along = (px * dx + py * dy) * inverse;
      along = along < 0 ? 0 : along;
      along = along > 1 ? 1 : along;
      const float ex = px - along * dx, ey = py - along * dy, squared = ex * ex + ey * ey;
      row[x] = squared < row[x] ? squared : row[x];
    }
  }
}

void GlyphCanvas::draw(const std::vector<GlyphStroke>& strokes, float radius, const Colour& colour, float opacity) {
  std::fill(distance_.begin(), distance_.end(), kFar);
  const float reach = radius + 1;
  for (const GlyphStroke& stroke : strokes) {
    for (size_t i = 1; i < stroke.size(); ++i) {
      const GlyphNode& from = stroke[i - 1];
      if (!stroke[i].control) {
        add_segment(from.x, from.y, stroke[i].x, stroke[i].y, reach);
        continue;
      }
      const GlyphNode &bend = stroke[i], &to = stroke[i + 1];
      float x = from.x, y = from.y;
      for (int step = 1; step <= kCurveSegments; ++step) {
        const float t = static_cast<float>(step) / kCurveSegments, s = 1 - t;
        const float u = s * s, v = 2 * s * t, w = t * t;
        const float next_x = u * from.x + v * bend.x + w * to.x, next_y = u * from.y + v * bend.y + w * to.y;
        add_segment(x, y, next_x, next_y, reach);
        x = next_x;
        y = next_y;
      }
      ++i;
    }
  }
  const int64_t pixels = side_ * side_;
  for (int64_t i = 0; i < pixels; ++i) {  // squared distance to coverage
    float cover = radius + 0.5f - std::sqrt(distance_[i]);
    cover = cover < 0 ? 0 : cover;
    cover = cover > 1 ? 1 : cover;
    distance_[i] = cover * opacity;
  }
  for (int channel = 0; channel < 3; ++channel) {
    float* values = plane(channel);
    const float ink = colour[channel];
    for (int64_t i = 0; i < pixels; ++i) values[i] = values[i] + (ink - values[i]) * distance_[i];
  }
}

void GlyphCanvas::write(uint8_t* out, int64_t channels) const {
  const int64_t pixels = side_ * side_;
  if (channels == 3) {
    for (int64_t i = 0; i < 3 * pixels; ++i) out[i] = to_byte(planes_[i]);
    return;
  }
  for (int64_t i = 0; i < pixels; ++i) {
    const int luma =
        77 * to_byte(planes_[i]) + 150 * to_byte(planes_[pixels + i]) + 29 * to_byte(planes_[2 * pixels + i]);
    out[i] = static_cast<uint8_t>(luma >> 8);
  }
}

}  // namespace sparsight
