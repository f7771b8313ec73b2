#include "sparsight/data/sets/glyph_painter.h"

#include <algorithm>
#include <array>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

// Colours and pens of one image.
struct Style {
  Colour paper{}, paper2{}, ink{}, frame_ink{};
  float glyph_radius = 1, frame_radius = 1;  // pixels
  int passes = 1;                            // times that each stroke is drawn
  float wobble = 0.02f;                      // shift of each stroke point, as a fraction of the shape
  float opacity = 1;
  float grain = 6;  // maximum noise, in levels
};

float uniform_between(RandomStream& random, double low, double high) {
  return static_cast<float>(random.uniform(low, high));
}

// A colour whose mean is about `level`, at most `tint` away from it in each channel.
Colour random_colour(RandomStream& random, double low, double high, double tint) {
  const double level = random.uniform(low, high);
  Colour colour;
  for (float& channel : colour) channel = static_cast<float>(level + random.uniform(-tint, tint));
  return colour;
}

Style random_style(const std::string& domain, float side, RandomStream& random) {
  Style style;
  style.glyph_radius = uniform_between(random, 0.024, 0.044) * side;
  style.frame_radius = uniform_between(random, 0.012, 0.022) * side;
  if (domain == "clean") {
    style.paper = random_colour(random, 190, 245, 20);
    style.ink = random_colour(random, 30, 100, 70);
    style.frame_ink = random_colour(random, 40, 120, 70);
  } else if (domain == "textured") {
    style.paper = random_colour(random, 125, 185, 40);
    style.paper2 = random_colour(random, 95, 155, 40);
    const bool dark = random.below(2) == 0;
    style.ink = dark ? random_colour(random, 0, 40, 30) : random_colour(random, 225, 255, 20);
    style.frame_ink = dark ? random_colour(random, 0, 50, 30) : random_colour(random, 220, 255, 20);
    style.grain = 14;
  } else if (domain == "sketch") {
    style.paper = random_colour(random, 232, 255, 3);
    style.ink = random_colour(random, 40, 110, 4);
    style.frame_ink = style.ink;
    style.glyph_radius *= 0.4f;
    style.frame_radius *= 0.7f;
    style.passes = 3;
    style.wobble = 0.045f;
    style.opacity = 0.65f;
    style.grain = 12;
  } else {
    SPARSIGHT_CHECK(domain == "inverted");
    style.paper = random_colour(random, 10, 60, 15);
    style.ink = random_colour(random, 150, 235, 50);
    style.frame_ink = random_colour(random, 130, 225, 50);
    style.grain = 10;
  }
  return style;
}

// Paper with a linear brightness gradient, or two papers mixed by stripes or blotches.
void fill_paper(const std::string& domain, const Style& style, RandomStream& random, GlyphCanvas& canvas) {
  const int64_t side = canvas.side();
  const float step = 1 / static_cast<float>(side);
  const float light_x = uniform_between(random, -0.12, 0.12), light_y = uniform_between(random, -0.12, 0.12);
  const bool textured = domain == "textured", stripes = random.below(2) == 0;
  const float wave_x = uniform_between(random, 2, 7), wave_y = uniform_between(random, -7, 7);
  constexpr int kCells = 6;
  std::array<float, (kCells + 1) * (kCells + 1)> lattice;
  for (float& value : lattice) value = textured ? uniform_between(random, 0, 1) : 0;
  for (int64_t y = 0; y < side; ++y) {
    for (int64_t x = 0; x < side; ++x) {
      const float u = (static_cast<float>(x) + 0.5f) * step, v = (static_cast<float>(y) + 0.5f) * step;
      const float light = 1 + light_x * (u - 0.5f) + light_y * (v - 0.5f);
      float second = 0;  // share of the second paper
      if (textured && stripes) {
        const float phase = u * wave_x + v * wave_y + 16;  // positive: conversion to int is floor
        const float part = phase - static_cast<float>(static_cast<int>(phase));
        second = part < 0.5f ? 2 * part : 2 - 2 * part;
      } else if (textured) {
        const float cu = u * kCells, cv = v * kCells;
        const int i = static_cast<int>(cu), j = static_cast<int>(cv);
        const float fu = cu - static_cast<float>(i), fv = cv - static_cast<float>(j);
        const float* top = lattice.data() + j * (kCells + 1) + i;
        const float* bottom = top + kCells + 1;
        const float above = top[0] + (top[1] - top[0]) * fu, below = bottom[0] + (bottom[1] - bottom[0]) * fu;
        second = above + (below - above) * fv;
      }
      for (int channel = 0; channel < 3; ++channel) {
        const float mixed = style.paper[channel] + (style.paper2[channel] - style.paper[channel]) * second;
        canvas.plane(channel)[y * side + x] = mixed * light;
      }
    }
  }
}

// A rotation of at most about 2 atan(0.16) = 18 degrees by its half-angle tangent, with stretch and shear.
GlyphPose random_pose(float side, RandomStream& random) {
  const float t = uniform_between(random, -0.16, 0.16), norm = 1 + t * t;
  const float cosine = (1 - t * t) / norm, sine = 2 * t / norm;
  const float scale = uniform_between(random, 0.85, 1.1) * side, stretch = uniform_between(random, -0.1, 0.1);
  const float slant = uniform_between(random, -0.15, 0.15);
  const float across = scale * (1 + stretch), down = scale * (1 - stretch);
  return {cosine * across,
          (cosine * slant - sine) * down,
          sine * across,
          (sine * slant + cosine) * down,
          side * (0.5f + uniform_between(random, -0.07, 0.07)),
          side * (0.5f + uniform_between(random, -0.07, 0.07))};
}

std::vector<GlyphStroke> posed(const std::vector<GlyphStroke>& strokes, const GlyphPose& pose, float size, float wobble,
                               RandomStream& random) {
  std::vector<GlyphStroke> result = strokes;
  for (GlyphStroke& stroke : result) {
    for (GlyphNode& node : stroke) {
      node.x = (node.x + uniform_between(random, -wobble, wobble)) * size;
      node.y = (node.y + uniform_between(random, -wobble, wobble)) * size;
      node = pose(node);
    }
  }
  return result;
}

// One stroke of a random hand-made glyph, small and at a random position.
void draw_distractor(const Style& style, RandomStream& random, GlyphCanvas& canvas) {
  const float side = static_cast<float>(canvas.side());
  const auto& shapes = hand_made_glyphs();
  const auto& strokes = shapes[random.below(std::ssize(shapes))].strokes;
  const std::vector<GlyphStroke> piece{strokes[random.below(std::ssize(strokes))]};
  GlyphPose pose = random_pose(side, random);
  pose.tx = uniform_between(random, 0, side);
  pose.ty = uniform_between(random, 0, side);
  const auto posed_piece = posed(piece, pose, uniform_between(random, 0.12, 0.24), style.wobble, random);
  canvas.draw(posed_piece, style.frame_radius, style.frame_ink, style.opacity * uniform_between(random, 0.5, 1));
}

void add_grain(float grain, RandomStream& random, GlyphCanvas& canvas) {
  const int64_t pixels = canvas.side() * canvas.side();
  const uint64_t key = random.seed();
  for (int64_t start = 0; start < pixels; start += 16) {
    const std::array<uint32_t, 4> words = philox(key, 1, static_cast<uint64_t>(start));
    const int64_t end = std::min<int64_t>(16, pixels - start);
    for (int64_t i = 0; i < end; ++i) {
      const auto byte = static_cast<int>((words[i / 4] >> (i % 4 * 8)) & 255);
      const float noise = (static_cast<float>(byte) - 127.5f) * grain / 127.5f;
      for (int channel = 0; channel < 3; ++channel) canvas.plane(channel)[start + i] += noise;
    }
  }
}

}  // namespace

const std::vector<std::string>& glyph_domains() {
  static const std::vector<std::string> names{"clean", "textured", "sketch", "inverted"};
  return names;
}

void paint_glyph(const GlyphPicture& picture, RandomStream random, GlyphCanvas& canvas) {
  const float side = static_cast<float>(canvas.side());
  const Style style = random_style(picture.domain, side, random);
  fill_paper(picture.domain, style, random, canvas);
  const int64_t distractors = random.below(picture.distractors + 1);
  for (int64_t i = 0; i < distractors; ++i) draw_distractor(style, random, canvas);
  const GlyphPose pose = random_pose(side, random);
  for (int pass = 0; pass < style.passes; ++pass) {
    if (picture.frame) {
      const auto frame = posed(picture.frame->strokes, pose, 0.84f, style.wobble / 2, random);
      canvas.draw(frame, style.frame_radius, style.frame_ink, style.opacity);
    }
    const auto glyph = posed(picture.glyph->strokes, pose, picture.frame ? 0.46f : 0.7f, style.wobble, random);
    canvas.draw(glyph, style.glyph_radius, style.ink, style.opacity);
  }
  add_grain(style.grain, random, canvas);
}

}  // namespace sparsight
