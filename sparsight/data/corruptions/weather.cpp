// Snow, frost, fog and bright light.
#include <algorithm>
#include <bit>
#include <cmath>

#include "sparsight/data/corruptions/corruptions.h"

namespace sparsight::corruptions {
namespace {

struct Snow {
  double mean, deviation, zoom, threshold;
  int64_t radius;
  double sigma, keep;
};
constexpr Snow kSnow[2][kSeverities] = {{{.1, .3, 3, .5, 10, 4, .8},
                                         {.2, .3, 2, .5, 12, 4, .7},
                                         {.55, .3, 4, .9, 12, 8, .7},
                                         {.55, .3, 4.5, .85, 12, 8, .65},
                                         {.55, .3, 2.5, .85, 12, 12, .55}},
                                        {{.1, .2, 1, .6, 8, 3, .95},
                                         {.1, .2, 1, .5, 10, 4, .9},
                                         {.15, .3, 1.75, .55, 10, 4, .9},
                                         {.25, .3, 2.25, .6, 12, 6, .85},
                                         {.3, .3, 1.25, .65, 14, 12, .8}}};
struct Frost {
  float image, ice;
};
constexpr Frost kFrost[2][kSeverities] = {{{1, .4F}, {.8F, .6F}, {.7F, .7F}, {.65F, .7F}, {.6F, .75F}},
                                          {{1, .2F}, {1, .3F}, {.9F, .4F}, {.85F, .4F}, {.75F, .45F}}};
struct Fog {
  double amount, decay;
};
constexpr Fog kFog[2][kSeverities] = {{{1.5, 2}, {2, 2}, {2.5, 1.7}, {2.5, 1.5}, {3, 1.4}},
                                      {{.2, 3}, {.5, 3}, {.75, 2.5}, {1, 2}, {1.5, 1.75}}};
constexpr float kBrightness[2][kSeverities] = {{.1F, .2F, .3F, .4F, .5F}, {.05F, .1F, .15F, .2F, .3F}};

// Heights 0..1 by the diamond-square algorithm on a torus; side: a power of two. The roughness falls by `decay` from
// each scale to the next.
Picture plasma(int64_t side, double decay, RandomStream& random) {
  Picture map(1, side, side);
  const auto value = [&](int64_t y, int64_t x) { return map.at(0, (y + side) % side, (x + side) % side); };
  double wibble = 100;
  for (int64_t step = side; step >= 2; step /= 2, wibble /= decay) {
    const int64_t half = step / 2;
    const auto rough = [&](float sum) {
      return sum / 4 + static_cast<float>(wibble * random.uniform(-wibble, wibble));
    };
    for (int64_t y = half; y < side; y += step)
      for (int64_t x = half; x < side; x += step)
        map.at(0, y, x) = rough(value(y - half, x - half) + value(y - half, x + half) + value(y + half, x - half) +
                                value(y + half, x + half));
    for (const int64_t odd : {int64_t{0}, half})
      for (int64_t y = odd; y < side; y += step)
        for (int64_t x = half - odd; x < side; x += step)
          map.at(0, y, x) = rough(value(y - half, x) + value(y + half, x) + value(y, x - half) + value(y, x + half));
  }
  const auto [low, high] = std::minmax_element(map.values.begin(), map.values.end());
  const float least = *low, range = std::max(*high - *low, 1e-12F);
  for (float& height : map.values) height = (height - least) / range;
  return map;
}

Picture plasma_for(const Picture& picture, double decay, RandomStream& random) {
  return plasma(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(picture.height, picture.width)))),
                decay, random);
}

}  // namespace

Picture snow(const Picture& picture, int severity, bool small, RandomStream& random) {
  const Snow& kind = kSnow[small][severity];
  Picture layer(1, picture.height, picture.width);
  for (float& value : layer.values) value = static_cast<float>(kind.mean + kind.deviation * random.normal());
  layer = zoomed(layer, kind.zoom);
  for (float& value : layer.values)
    if (value < static_cast<float>(kind.threshold)) value = 0;
  clip(layer);
  layer = motion_blurred(layer, kind.radius, kind.sigma, random.uniform(-135, -45));
  const Picture luma = grey(picture);
  const auto keep = static_cast<float>(kind.keep);
  Picture snowy = picture;
  for (int64_t c = 0; c < picture.channels; ++c)
    for (int64_t y = 0; y < picture.height; ++y)
      for (int64_t x = 0; x < picture.width; ++x) {
        float& value = snowy.at(c, y, x);
        value = keep * value + (1 - keep) * std::max(value, luma.at(0, y, x) * 1.5F + 0.5F);
        value += layer.at(0, y, x) + layer.at(0, picture.height - 1 - y, picture.width - 1 - x);
      }
  return snowy;
}

// A bluish haze with bright ridges where a fractal surface crosses its middle height, as ice flowers have; on average
// as bright as the paper's photos of frost.
Picture frost(const Picture& picture, int severity, bool small, RandomStream& random) {
  constexpr float kTint[3] = {.85F, 1, 1.08F}, kGreyTint = .96F;  // its luma
  const Frost& kind = kFrost[small][severity];
  const Picture surface = plasma_for(picture, 1.6, random), haze = plasma_for(picture, 2.5, random);
  Picture frozen = picture;
  for (int64_t c = 0; c < picture.channels; ++c)
    for (int64_t y = 0; y < picture.height; ++y)
      for (int64_t x = 0; x < picture.width; ++x) {
        const float ridge = 1 - 2 * std::abs(surface.at(0, y, x) - 0.5F);
        const float ice = 0.33F + 0.31F * haze.at(0, y, x) + 0.38F * ridge * ridge * ridge * ridge;
        frozen.at(c, y, x) = kind.image * picture.at(c, y, x) +
                             kind.ice * (picture.channels < 3 ? kGreyTint : kTint[std::min<int64_t>(c, 2)]) * ice;
      }
  return frozen;
}

Picture fog(const Picture& picture, int severity, bool small, RandomStream& random) {
  const Fog& kind = kFog[small][severity];
  const Picture cloud = plasma_for(picture, kind.decay, random);
  const double brightest = *std::max_element(picture.values.begin(), picture.values.end());
  const auto scale = static_cast<float>(brightest / (brightest + kind.amount));
  Picture foggy = picture;
  for (int64_t c = 0; c < picture.channels; ++c)
    for (int64_t y = 0; y < picture.height; ++y)
      for (int64_t x = 0; x < picture.width; ++x) {
        float& value = foggy.at(c, y, x);
        value = (value + static_cast<float>(kind.amount) * cloud.at(0, y, x)) * scale;
      }
  return foggy;
}

// Adds to the value of hue, saturation and value, that is, to the largest channel, and scales the others with it.
Picture brightness(const Picture& picture, int severity, bool small, RandomStream&) {
  const float more = kBrightness[small][severity];
  Picture bright = picture;
  for (int64_t y = 0; y < picture.height; ++y)
    for (int64_t x = 0; x < picture.width; ++x) {
      float largest = 0;
      for (int64_t c = 0; c < picture.channels; ++c) largest = std::max(largest, picture.at(c, y, x));
      const float wanted = std::min(1.0F, largest + more);
      for (int64_t c = 0; c < picture.channels; ++c)
        bright.at(c, y, x) = largest > 0 ? picture.at(c, y, x) * wanted / largest : wanted;
    }
  return bright;
}

}  // namespace sparsight::corruptions
