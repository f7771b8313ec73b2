#include "sparsight/analysis/patch_tint.h"

#include <algorithm>
#include <cmath>

#include "sparsight/analysis/canvas.h"
#include "sparsight/core/error.h"

namespace sparsight {

namespace {

constexpr Rgb kNoExpert = {70, 70, 70};
constexpr int64_t kMargin = 10, kSwatch = 18;

struct Grid {
  int64_t height = 0, width = 0;
};

// A token for the whole image is a grid of one patch.
Grid patch_grid(const Routing& routing) {
  const TokenLayout& layout = routing.layout;
  if (layout.grid_height > 0 && layout.grid_width > 0) return {layout.grid_height, layout.grid_width};
  if (layout.per_image == 1 && layout.prefix == 0) return {1, 1};
  return {};
}

// Rec. 601 luma.
double to_grey(Rgb colour) { return 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2]; }

// The image's brightness in the expert's colour.
Rgb tinted(Rgb pixel, int64_t expert) {
  if (expert < 0)
    return {static_cast<uint8_t>(pixel[0] / 3), static_cast<uint8_t>(pixel[1] / 3), static_cast<uint8_t>(pixel[2] / 3)};
  const Rgb colour = expert_colour(expert);
  const double grey = to_grey(pixel);
  Rgb mixed;
  for (int c = 0; c < 3; ++c) mixed[c] = static_cast<uint8_t>(std::lround(0.45 * grey + 0.55 * colour[c]));
  return mixed;
}

void write_number(Canvas& canvas, int64_t x, int64_t y, int64_t width, int64_t height, int64_t number) {
  const std::string digits = std::to_string(number);
  const int64_t wide = Canvas::kGlyphWidth * static_cast<int64_t>(digits.size()) - 1, tall = Canvas::kGlyphHeight - 1;
  const int64_t scale =
      std::min(width / (2 * wide), height / (2 * tall)) >= 1 ? std::min(width / (2 * wide), height / (2 * tall)) : 1;
  if (wide + 2 > width || tall + 2 > height) return;
  const int64_t left = x + (width - wide * scale) / 2, top = y + (height - tall * scale) / 2;
  canvas.text(left + 1, top + 1, digits, {0, 0, 0}, scale);
  canvas.text(left, top, digits, {255, 255, 255}, scale);
}

// [3,H,W] enlarged by an integer factor.
Canvas enlarged(const at::Tensor& image, int64_t side) {
  SPARSIGHT_CHECK(image.dim() == 3 && image.size(0) == 3 && image.scalar_type() == at::kByte);
  const int64_t height = image.size(1), width = image.size(2);
  const int64_t scale = std::max<int64_t>(1, side / std::max<int64_t>(1, std::min(height, width)));
  Canvas small(width, height, kPaper), canvas(width * scale, height * scale, kPaper);
  small.paste(0, 0, image);
  for (int64_t y = 0; y < canvas.height(); ++y)
    for (int64_t x = 0; x < canvas.width(); ++x) canvas.set(x, y, small.pixel(x / scale, y / scale));
  return canvas;
}

// Where patch `patch` of `patches` begins on a side of `pixels`.
int64_t first_pixel(int64_t patch, int64_t patches, int64_t pixels) { return (patch * pixels + patches - 1) / patches; }

Canvas tinted_canvas(const at::Tensor& image, const Routing& routing, int64_t index, int64_t side) {
  Canvas canvas = enlarged(image, side);
  const Grid grid = patch_grid(routing);
  SPARSIGHT_CHECK(grid.height > 0);
  const std::vector<std::vector<int64_t>> experts = shown_experts(routing, index);
  for (int64_t row = 0; row < grid.height; ++row)
    for (int64_t column = 0; column < grid.width; ++column) {
      const int64_t first = first_pixel(column, grid.width, canvas.width()),
                    width = first_pixel(column + 1, grid.width, canvas.width()) - first;
      const int64_t top = first_pixel(row, grid.height, canvas.height()),
                    bottom = first_pixel(row + 1, grid.height, canvas.height());
      std::vector<int64_t> here = experts.at(routing.layout.prefix + row * grid.width + column);
      if (here.empty()) here = {-1};
      const int64_t stripes = std::ssize(here);
      for (int64_t i = 0; i < stripes; ++i) {
        const int64_t left = first + i * width / stripes, right = first + (i + 1) * width / stripes;
        for (int64_t y = top; y < bottom; ++y)
          for (int64_t x = left; x < right; ++x) canvas.set(x, y, tinted(canvas.pixel(x, y), here[i]));
        if (here[i] >= 0) write_number(canvas, left, top, right - left, bottom - top, here[i]);
      }
    }
  return canvas;
}

// White rings with a dark outline, of the same size whatever the size of the patches.
void circle_points(Canvas& canvas, const std::vector<PicturePoint>& points, double scale) {
  constexpr double kRadius = 9;
  for (const PicturePoint& point : points) {
    canvas.ring(point.x * scale, point.y * scale, kRadius + 1, kInk);
    canvas.ring(point.x * scale, point.y * scale, kRadius, kPaper);
    canvas.ring(point.x * scale, point.y * scale, kRadius - 1, kPaper);
    canvas.ring(point.x * scale, point.y * scale, kRadius - 2, kInk);
  }
}

void swatch(Canvas& canvas, int64_t x, int64_t y, int64_t expert) {
  canvas.fill(x, y, kSwatch, kSwatch, expert < 0 ? kNoExpert : expert_colour(expert));
  if (expert >= 0) write_number(canvas, x, y, kSwatch, kSwatch, expert);
}

}  // namespace

std::vector<int64_t> first_experts(const Routing& routing, int64_t image) {
  const int64_t per_image = routing.layout.per_image;
  SPARSIGHT_CHECK(per_image > 0 && image >= 0 && image < routing.layout.images);
  const at::Tensor tokens = routing.token.to(at::kCPU, at::kLong).contiguous();
  const at::Tensor experts = routing.expert.to(at::kCPU, at::kLong).contiguous();
  const at::Tensor gates = routing.gate.detach().to(at::kCPU, at::kFloat).contiguous();
  const at::Tensor kept = routing.kept.to(at::kCPU, at::kBool).contiguous();
  std::vector<int64_t> best(per_image, -1);
  std::vector<float> largest(per_image, 0);
  for (int64_t a = 0; a < tokens.numel(); ++a) {
    const int64_t s = tokens.const_data_ptr<int64_t>()[a] - image * per_image;
    if (s < 0 || s >= per_image || !kept.const_data_ptr<bool>()[a]) continue;
    const float gate = gates.const_data_ptr<float>()[a];
    if (best[s] >= 0 && gate <= largest[s]) continue;
    best[s] = experts.const_data_ptr<int64_t>()[a];
    largest[s] = gate;
  }
  return best;
}

std::vector<std::vector<int64_t>> shown_experts(const Routing& routing, int64_t image) {
  const std::vector<int64_t> first = first_experts(routing, image);
  std::vector<std::vector<int64_t>> shown(first.size());
  if (routing.per_token > 0) {
    for (size_t s = 0; s < first.size(); ++s)
      if (first[s] >= 0) shown[s] = {first[s]};
    return shown;
  }
  const int64_t per_image = routing.layout.per_image;
  const at::Tensor gates = routing.gate.detach().to(at::kCPU, at::kDouble).contiguous();
  const at::Tensor order = std::get<1>(gates.sort(/*stable=*/true, /*dim=*/0, /*descending=*/true));
  const at::Tensor tokens = routing.token.to(at::kCPU, at::kLong).contiguous();
  const at::Tensor experts = routing.expert.to(at::kCPU, at::kLong).contiguous();
  const at::Tensor kept = routing.kept.to(at::kCPU, at::kBool).contiguous();
  for (int64_t i = 0; i < order.numel(); ++i) {
    const int64_t a = order.const_data_ptr<int64_t>()[i];
    const int64_t s = tokens.const_data_ptr<int64_t>()[a] - image * per_image;
    if (s >= 0 && s < per_image && kept.const_data_ptr<bool>()[a])
      shown[s].push_back(experts.const_data_ptr<int64_t>()[a]);
  }
  return shown;
}

bool can_tint(const Routing& routing) { return patch_grid(routing).height > 0; }

at::Tensor tint_patches(const at::Tensor& image, const Routing& routing, int64_t index, int64_t side) {
  return tinted_canvas(image, routing, index, side).tensor();
}

at::Tensor routing_panels(const at::Tensor& image, const std::vector<Routing>& routings, int64_t index, int64_t side,
                          const std::vector<PicturePoint>& points) {
  struct Panel {
    std::string title;
    Canvas canvas;
    std::vector<int64_t> others;  // experts of the tokens that are not patches
  };
  std::vector<Panel> panels = {{"input", enlarged(image, side), {}}};
  int64_t experts = 0;
  for (const Routing& routing : routings) {
    if (!can_tint(routing)) continue;
    std::vector<int64_t> others = first_experts(routing, index);
    others.resize(std::min<size_t>(others.size(), routing.layout.prefix));
    panels.push_back({routing.layer, tinted_canvas(image, routing, index, side), std::move(others)});
    experts = std::max(experts, routing.experts);
  }
  for (Panel& panel : panels)
    circle_points(panel.canvas, points, static_cast<double>(panel.canvas.width()) / static_cast<double>(image.size(2)));
  const int64_t wide = panels[0].canvas.width(), tall = panels[0].canvas.height(), head = kSwatch + kMargin;
  const int64_t width = kMargin + static_cast<int64_t>(panels.size()) * (wide + kMargin);
  const int64_t per_row = std::max<int64_t>(1, (width - 2 * kMargin) / (kSwatch + 4));
  const int64_t legend_rows = (experts + per_row - 1) / per_row;
  Canvas canvas(width, kMargin + head + tall + kMargin + legend_rows * (kSwatch + 4) + (legend_rows > 0 ? kMargin : 0),
                kPaper);
  int64_t x = kMargin;
  for (const Panel& panel : panels) {
    const int64_t others = static_cast<int64_t>(panel.others.size());
    const size_t room = std::max<int64_t>(0, wide - others * (kSwatch + 2)) / Canvas::kGlyphWidth;
    // The end of a layer's name is more informative than its start.
    const std::string title = panel.title.size() > room ? panel.title.substr(panel.title.size() - room) : panel.title;
    canvas.text(x, kMargin + 5, title, kInk);
    for (int64_t i = 0; i < others; ++i)
      swatch(canvas, x + wide - (others - i) * (kSwatch + 2) + 2, kMargin, panel.others[i]);
    canvas.paste(x, kMargin + head, panel.canvas.tensor());
    x += wide + kMargin;
  }
  for (int64_t e = 0; e < experts; ++e)
    swatch(canvas, kMargin + e % per_row * (kSwatch + 4), kMargin + head + tall + kMargin + e / per_row * (kSwatch + 4),
           e);
  return canvas.tensor();
}

}  // namespace sparsight
