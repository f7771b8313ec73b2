#include "sparsight/analysis/heat_map.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sparsight/analysis/canvas.h"
#include "sparsight/analysis/colour_scale.h"
#include "sparsight/core/error.h"

namespace sparsight {

namespace {

constexpr int64_t kLine = 14;  // of the list of columns
constexpr int64_t kCell = 22, kMapMargin = 12, kLongestName = 20;
constexpr int64_t kMaxMapWidth = 4096;  // of the cells in pixels; those of more experts than 186 are narrower

int64_t cell_width(int64_t experts) { return std::clamp<int64_t>(kMaxMapWidth / experts, 1, kCell); }

// Each row divided by its sum; a row without counts stays empty.
std::vector<std::vector<double>> row_shares(const Json& counts) {
  std::vector<std::vector<double>> table;
  for (const Json& row : counts) {
    table.push_back(row.get<std::vector<double>>());
    double sum = 0;
    for (double value : table.back()) sum += value;
    for (double& value : table.back()) value = sum > 0 ? value / sum : 0;
  }
  return table;
}

}  // namespace

at::Tensor heat_map_picture(const std::string& title, const Json& counts, const std::vector<std::string>& rows,
                            const std::string& of, const std::vector<std::string>& columns) {
  std::vector<std::vector<double>> table = row_shares(counts);
  SPARSIGHT_CHECK(!table.empty() && !table[0].empty());
  const int64_t width = static_cast<int64_t>(table[0].size()), cell = cell_width(width);
  std::vector<std::string> names;
  size_t longest = 1;
  double maximum = 0;
  for (size_t k = 0; k < table.size(); ++k) {
    const double largest = *std::max_element(table[k].begin(), table[k].end());
    if (largest <= 0) continue;
    names.push_back(rows.size() == table.size() ? rows[k].substr(0, kLongestName) : std::to_string(k));
    longest = std::max(longest, names.back().size());
    maximum = std::max(maximum, largest);
  }
  std::erase_if(table, [](const auto& row) { return *std::max_element(row.begin(), row.end()) <= 0; });
  const int64_t height = static_cast<int64_t>(table.size());
  const int64_t left = kMapMargin + static_cast<int64_t>(longest) * Canvas::kGlyphWidth + 6, top = kMapMargin + 24;
  const std::string legend = cat("0 to ", std::lround(100 * maximum), " % of ", of);
  size_t widest = std::max(legend.size(), title.size());
  for (const std::string& column : columns) widest = std::max(widest, column.size());
  const int64_t text_width = Canvas::kGlyphWidth * static_cast<int64_t>(widest);
  Canvas canvas(std::max(left + width * cell, kMapMargin + text_width) + kMapMargin,
                top + height * kCell + 44 + kLine * std::ssize(columns), kPaper);
  canvas.text(kMapMargin, kMapMargin, title, kInk);
  for (int64_t k = 0; k < height; ++k) {
    canvas.text(kMapMargin, top + k * kCell + 7, names[k], kInk);
    for (int64_t e = 0; e < static_cast<int64_t>(table[k].size()) && e < width; ++e)
      canvas.fill(left + e * cell, top + k * kCell, std::max<int64_t>(1, cell - 1), kCell - 1,
                  viridis(maximum > 0 ? table[k][e] / maximum : 0));
  }
  const int64_t apart = cell == kCell ? 1 : 5 * Canvas::kGlyphWidth / cell + 1;  // room for numbers of five digits
  for (int64_t e = 0; e < width; e += apart)
    canvas.text(left + e * cell + (e < 10 ? 8 : 5), top + height * kCell + 5, std::to_string(e), kInk);
  canvas.text(kMapMargin, top + height * kCell + 24, legend, kInk);
  for (int64_t e = 0; e < std::ssize(columns); ++e)
    canvas.text(kMapMargin, top + height * kCell + 38 + e * kLine, columns[static_cast<size_t>(e)], kInk);
  return canvas.tensor();
}

}  // namespace sparsight
