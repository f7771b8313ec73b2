// An image to draw on: rectangles, pixels and plain text. For the PNG files of explain; charts of the report are made
// with Vega-Lite.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "sparsight/analysis/expert_colours.h"

namespace sparsight {

inline constexpr Rgb kPaper = {255, 255, 255}, kInk = {32, 40, 52};  // of pages and their text

class Canvas {
 public:
  static constexpr int64_t kGlyphWidth = 6, kGlyphHeight = 8;  // of a character, with its spacing, at scale 1

  Canvas(int64_t width, int64_t height, Rgb background);

  int64_t width() const { return width_; }
  int64_t height() const { return height_; }
  Rgb pixel(int64_t x, int64_t y) const;

  // Clipped at the image's borders.
  void set(int64_t x, int64_t y, Rgb colour);
  void fill(int64_t x, int64_t y, int64_t width, int64_t height, Rgb colour);
  // Printable ASCII; other bytes show as "?". (x, y) is the upper left corner; a font pixel is scale x scale pixels.
  void text(int64_t x, int64_t y, std::string_view words, Rgb colour, int64_t scale = 1);
  // A ring of radius - 1 to radius pixels around (x, y).
  void ring(double x, double y, double radius, Rgb colour);
  // image: [3,H,W] uint8
  void paste(int64_t x, int64_t y, const at::Tensor& image);

  at::Tensor tensor() const;  // [3,H,W] uint8

 private:
  int64_t width_, height_;
  std::vector<Rgb> pixels_;  // row by row
};

}  // namespace sparsight
