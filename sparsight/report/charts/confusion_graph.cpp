#include "sparsight/report/charts/confusion_graph.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numbers>

#include "sparsight/analysis/expert_colours.h"
#include "sparsight/analysis/superclasses/affinity.h"
#include "sparsight/core/error.h"
#include "sparsight/report/html.h"

namespace sparsight {
namespace {

constexpr double kArcOfName = 13, kSmallestRadius = 150, kNameLength = 170, kGapBetweenSuperclasses = 1.5;
constexpr size_t kNameBytes = 28, kEdgesOfClass = 2;

struct CirclePoint {
  double angle = 0, x = 0, y = 0;
};

std::string one_decimal(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value == 0 ? 0 : value);  // no "-0.0"
  return text;
}

// A name of a limited length, cut between characters of UTF-8.
std::string shortened_name(const std::string& name) {
  if (name.size() <= kNameBytes) return name;
  size_t end = kNameBytes;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
  return name.substr(0, end) + "...";
}

// Edges (i, j) with i < j: for each class those to its nearest classes.
std::map<std::pair<int64_t, int64_t>, double> strongest_edges(const at::Tensor& affinity) {
  const int64_t n = affinity.size(0);
  std::map<std::pair<int64_t, int64_t>, double> edges;
  for (int64_t i = 0; i < n; ++i) {
    const double* row = affinity.const_data_ptr<double>() + i * n;
    std::vector<int64_t> others;
    for (int64_t j = 0; j < n; ++j)
      if (row[j] > 0) others.push_back(j);
    std::ranges::stable_sort(others, [&](int64_t a, int64_t b) { return row[a] > row[b]; });
    if (others.size() > kEdgesOfClass) others.resize(kEdgesOfClass);
    for (const int64_t j : others) edges[{std::min(i, j), std::max(i, j)}] = row[j];
  }
  return edges;
}

class GraphDrawing {
 public:
  explicit GraphDrawing(const FoundSuperclasses& found) : found_(found), points_(found.classes.size()) {
    const double slots = static_cast<double>(found.classes.size()) +
                         kGapBetweenSuperclasses * static_cast<double>(found.measures.clusters.size());
    radius_ = std::max(kSmallestRadius, slots * kArcOfName / (2 * std::numbers::pi));
    middle_ = radius_ + kNameLength;
    double slot = 0;
    for (const ClusterMeasures& cluster : found.measures.clusters) {
      for (const int64_t k : cluster.classes) {
        const double angle = 2 * std::numbers::pi * slot++ / slots - std::numbers::pi / 2;
        points_[static_cast<size_t>(k)] = {angle, middle_ + radius_ * std::cos(angle),
                                           middle_ + radius_ * std::sin(angle)};
      }
      slot += kGapBetweenSuperclasses;
    }
  }

  std::string svg() const {
    const std::string side = one_decimal(2 * middle_);
    std::string text = cat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", side, " ", side, "\" width=\"",
                           side, "\" height=\"", side, "\" font-family=\"sans-serif\" font-size=\"11\">\n",
                           "<title>Confusions between classes, by super-class</title>\n",
                           "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
    add_edges(text);
    for (size_t k = 0; k < points_.size(); ++k) add_class(text, k);
    return text + "</svg>\n";
  }

 private:
  std::string colour(int64_t k) const {
    return hex(expert_colour(found_.clusters.class_to_superclass[static_cast<size_t>(k)]));
  }

  void add_edges(std::string& text) const {
    const auto edges = strongest_edges(confusion_affinity(found_.counts));
    double most = 0;
    for (const auto& [pair, weight] : edges) most = std::max(most, weight);
    const auto& of = found_.clusters.class_to_superclass;
    for (const bool inside : {false, true})  // coloured edges above the grey ones
      for (const auto& [pair, weight] : edges) {
        const auto [i, j] = pair;
        if ((of[static_cast<size_t>(i)] == of[static_cast<size_t>(j)]) != inside) continue;
        const CirclePoint &a = points_[static_cast<size_t>(i)], &b = points_[static_cast<size_t>(j)];
        const auto bent = [&](double x, double y) { return middle_ + ((x + y) / 2 - middle_) * 0.5; };
        text += cat("<path d=\"M", one_decimal(a.x), " ", one_decimal(a.y), " Q", one_decimal(bent(a.x, b.x)), " ",
                    one_decimal(bent(a.y, b.y)), " ", one_decimal(b.x), " ", one_decimal(b.y),
                    "\" fill=\"none\" stroke=\"", inside ? colour(i) : "#b0b0b0", "\" stroke-width=\"",
                    one_decimal(0.5 + 4.5 * weight / most), "\" stroke-opacity=\"0.7\"/>\n");
      }
  }

  void add_class(std::string& text, size_t k) const {
    const CirclePoint& point = points_[k];
    const bool is_left = std::cos(point.angle) < -1e-9;  // names on the left are turned, so that none is upside down
    const double degrees = point.angle * 180 / std::numbers::pi + (is_left ? 180 : 0);
    text += cat("<circle cx=\"", one_decimal(point.x), "\" cy=\"", one_decimal(point.y), "\" r=\"4.5\" fill=\"",
                colour(static_cast<int64_t>(k)), "\"/>\n<text transform=\"translate(", one_decimal(point.x), " ",
                one_decimal(point.y), ") rotate(", one_decimal(degrees), ")\" x=\"", is_left ? "-9" : "9",
                "\" y=\"4\" text-anchor=\"", is_left ? "end" : "start", "\">",
                escape_html(shortened_name(found_.classes[k])), "</text>\n");
  }

  const FoundSuperclasses& found_;
  std::vector<CirclePoint> points_;
  double radius_ = 0, middle_ = 0;
};

}  // namespace

std::string confusion_graph_svg(const FoundSuperclasses& found) { return GraphDrawing(found).svg(); }

}  // namespace sparsight
