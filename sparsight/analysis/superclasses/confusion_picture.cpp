#include "sparsight/analysis/superclasses/confusion_picture.h"

#include <algorithm>
#include <cmath>

#include "sparsight/analysis/canvas.h"
#include "sparsight/analysis/colour_scale.h"
#include "sparsight/analysis/superclasses/partition.h"
#include "sparsight/core/error.h"

namespace sparsight {
namespace {

constexpr int64_t kMatrixSide = 1400, kMaxCellSide = 22, kFrame = 12, kHeading = 24, kColourBar = 8;
constexpr size_t kShownName = 20;
constexpr Rgb kDiagonal = {150, 150, 150};

// [K,K] shares of each row's images.
std::vector<double> row_shares(const at::Tensor& counts) {
  const at::Tensor values = counts.to(at::kCPU, at::kDouble).contiguous();
  const int64_t n = values.size(0);
  std::vector<double> shares(values.const_data_ptr<double>(), values.const_data_ptr<double>() + n * n);
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += shares[i * n + j];
    for (int64_t j = 0; j < n && sum > 0; ++j) shares[i * n + j] /= sum;
  }
  return shares;
}

}  // namespace

at::Tensor confusion_picture(const at::Tensor& counts, const std::vector<int64_t>& class_to_superclass,
                             const std::vector<std::string>& classes) {
  const int64_t n = counts.size(0);
  SPARSIGHT_CHECK(std::ssize(class_to_superclass) == n && std::ssize(classes) == n);
  const std::vector<double> shares = row_shares(counts);
  std::vector<int64_t> order, starts;  // classes by super-class, and where each super-class begins
  for (const auto& members : cluster_members(class_to_superclass)) {
    starts.push_back(std::ssize(order));
    order.insert(order.end(), members.begin(), members.end());
  }
  double most = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      if (i != j) most = std::max(most, shares[i * n + j]);

  const int64_t cell = std::clamp<int64_t>(kMatrixSide / n, 1, kMaxCellSide);
  const bool has_names = cell >= Canvas::kGlyphHeight + 1;
  size_t longest = 0;
  for (const std::string& name : classes) longest = std::max(longest, std::min(name.size(), kShownName));
  const int64_t names = has_names ? static_cast<int64_t>(longest) * Canvas::kGlyphWidth + 6 : 0;
  const std::string legend = cat("rows: true classes; columns: predicted, in the same order; 0 to ",
                                 std::lround(100 * most), " % of a class's images");
  const int64_t text_width = Canvas::kGlyphWidth * static_cast<int64_t>(legend.size());
  const int64_t left = kFrame + names + kColourBar + 4, top = kFrame + kHeading;
  Canvas canvas(std::max(left + n * cell, kFrame + text_width) + kFrame, top + n * cell + 36, kPaper);
  canvas.text(kFrame, kFrame, "confusions by super-class", kInk);
  for (int64_t row = 0; row < n; ++row) {
    const int64_t i = order[row], y = top + row * cell;
    if (has_names) canvas.text(kFrame, y + (cell - 7) / 2, classes[i].substr(0, kShownName), kInk);
    canvas.fill(left - kColourBar - 2, y, kColourBar, cell, expert_colour(class_to_superclass[i]));
    for (int64_t column = 0; column < n; ++column) {
      const double share = most > 0 ? shares[i * n + order[column]] / most : 0;
      canvas.fill(left + column * cell, y, cell, cell, row == column ? kDiagonal : viridis(share));
    }
  }
  for (size_t e = 0; e < starts.size(); ++e) {
    const int64_t end = e + 1 < starts.size() ? starts[e + 1] : n;
    const int64_t x = left + starts[e] * cell, y = top + starts[e] * cell, side = (end - starts[e]) * cell;
    canvas.fill(x, y, side, 1, kPaper), canvas.fill(x, y + side - 1, side, 1, kPaper);
    canvas.fill(x, y, 1, side, kPaper), canvas.fill(x + side - 1, y, 1, side, kPaper);
  }
  canvas.text(kFrame, top + n * cell + 12, legend, kInk);
  return canvas.tensor();
}

}  // namespace sparsight
