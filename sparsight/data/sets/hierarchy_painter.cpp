#include "sparsight/data/sets/hierarchy_painter.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace sparsight {
namespace {

using ChannelLevels = std::array<float, 3>;

struct NamedColour {
  const char* name;
  ChannelLevels levels;
};
constexpr NamedColour kColours[] = {{"red", {190, 80, 80}},     {"blue", {80, 90, 195}},     {"green", {80, 175, 80}},
                                    {"yellow", {175, 170, 70}}, {"magenta", {175, 75, 175}}, {"cyan", {70, 170, 175}}};

float max_norm(float x, float y) { return std::max(std::abs(x), std::abs(y)); }

bool in_disc(float x, float y) { return x * x + y * y <= 1; }
bool in_bar(float x, float y) { return std::abs(x) <= 1 && std::abs(y) <= 0.5f; }
bool in_pillar(float x, float y) { return in_bar(y, x); }
bool in_cross(float x, float y) { return max_norm(x, y) <= 1 && std::min(std::abs(x), std::abs(y)) <= 0.4f; }
bool in_ring(float x, float y) { return in_disc(x, y) && x * x + y * y >= 0.25f; }
bool in_frame(float x, float y) { return max_norm(x, y) >= 0.5f && max_norm(x, y) <= 0.9f; }
bool in_diamond(float x, float y) { return std::abs(x) + std::abs(y) <= 1.15f; }
bool in_square(float x, float y) { return max_norm(x, y) <= 0.85f; }

// Whether a point is inside; (0, 0) is the centre and 1 the radius.
struct NamedShape {
  const char* name;
  bool (*contains)(float x, float y);
};
constexpr NamedShape kShapes[] = {{"disc", in_disc},       {"bar", in_bar},      {"pillar", in_pillar},
                                  {"cross", in_cross},     {"ring", in_ring},    {"frame", in_frame},
                                  {"diamond", in_diamond}, {"square", in_square}};

template <class Named, size_t N>
std::vector<std::string> names_listed(const Named (&list)[N]) {
  std::vector<std::string> names;
  for (const Named& entry : list) names.emplace_back(entry.name);
  return names;
}

float sampled(RandomStream& random, double low, double high) { return static_cast<float>(random.uniform(low, high)); }

}  // namespace

const std::vector<std::string>& hierarchy_colours() {
  static const std::vector<std::string> names = names_listed(kColours);
  return names;
}

const std::vector<std::string>& hierarchy_shapes() {
  static const std::vector<std::string> names = names_listed(kShapes);
  return names;
}

void paint_hierarchy(const HierarchyPicture& picture, RandomStream random, int64_t side, uint8_t* out) {
  const auto pixels = static_cast<float>(side);
  ChannelLevels paper, paint;
  const float paper_level = sampled(random, 70, 200), brightness = sampled(random, 0.8, 1.15);
  for (size_t channel = 0; channel < 3; ++channel) {
    paper[channel] = paper_level + sampled(random, -20, 20);
    paint[channel] = kColours[picture.colour].levels[channel] * brightness + sampled(random, -18, 18);
  }
  const float light_x = sampled(random, -0.2, 0.2), light_y = sampled(random, -0.2, 0.2);
  const float radius = sampled(random, 0.34, 0.42) * pixels;
  const float centre_x = sampled(random, 0.42, 0.58) * pixels, centre_y = sampled(random, 0.42, 0.58) * pixels;
  const float contrast = sampled(random, 0.6, 1.4) * static_cast<float>(picture.contrast);
  const int64_t phase_x = random.below(picture.shifts), phase_y = random.below(picture.shifts);
  const int64_t point = std::max<int64_t>(1, side / 32);
  const auto& contains = kShapes[picture.shape].contains;
  for (int64_t y = 0; y < side; ++y) {
    for (int64_t x = 0; x < side; ++x) {
      const float px = static_cast<float>(x) + 0.5f, py = static_cast<float>(y) + 0.5f;
      const float light = 1 + light_x * (px / pixels - 0.5f) + light_y * (py / pixels - 0.5f);
      const float noise = sampled(random, -picture.noise, picture.noise);
      const bool inside = contains((px - centre_x) / radius, (py - centre_y) / radius);
      const int8_t bright = picture.tile[static_cast<size_t>((y / point + phase_y) % kTileSide * kTileSide +
                                                             (x / point + phase_x) % kTileSide)];
      for (size_t channel = 0; channel < 3; ++channel) {
        const float level = inside ? paint[channel] * (1 + contrast * static_cast<float>(bright)) : paper[channel];
        const float value = level * light + noise;
        out[(static_cast<int64_t>(channel) * side + y) * side + x] =
            static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f) + 0.5f);
      }
    }
  }
}

}  // namespace sparsight
