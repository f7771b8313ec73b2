#include "sparsight/data/sets/glyph_shapes.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "sparsight/core/error.h"
#include "sparsight/core/shuffle.h"

namespace sparsight {
namespace {

struct Drawing {
  const char* name;
  const char* path;  // Mxy starts a stroke, Lxy draws a line, Qabxy a curve with control ab; digits on a grid of 0..8
};

constexpr Drawing kSigns[] = {
    {"arrow", "M04 L84 M51 L84 L57"},
    {"house", "M04 L40 L84 M14 L18 L78 L74"},
    {"bolt", "M50 L15 L65 L38"},
    {"spiral", "M44 Q6466 Q6838 Q0804 Q0040 Q8085"},
    {"star", "M40 L68 L03 L83 L28 L40"},
    {"heart", "M48 L03 Q0020 Q4042 Q4060 Q8083 L48"},
    {"fish", "M04 Q3064 Q3804 M64 L82 L86 L64"},
    {"waves", "M02 Q2042 Q6482 M06 Q2446 Q6886"},
    {"key", "M02 Q0020 Q4042 Q4424 Q0402 M33 L88 M66 L84"},
    {"flag", "M18 L10 L83 L15"},
    {"clock", "M40 Q8084 Q8848 Q0804 Q0040 M41 L44 L64"},
    {"eye", "M04 Q4084 Q4804 M43 L45"},
    {"hourglass", "M00 L80 L08 L88 L00"},
    {"tree", "M40 L05 L85 L40 M45 L48"},
    {"moon", "M60 Q0004 Q0868 Q2460"},
    {"ladder", "M20 L28 M60 L68 M22 L62 M26 L66"},
    {"A", "M08 L40 L88 M25 L65"},
    {"B", "M04 L44 Q7472 Q7040 L00 L08 L48 Q8886 Q8444"},
    {"C", "M82 Q8040 Q0004 Q0848 Q8886"},
    {"D", "M00 L08 L38 Q8884 Q8030 L00"},
    {"E", "M80 L00 L08 L88 M04 L64"},
    {"F", "M80 L00 L08 M04 L64"},
    {"G", "M82 Q8040 Q0004 Q0848 Q8884 L54"},
    {"H", "M00 L08 M80 L88 M04 L84"},
    {"I", "M20 L60 M40 L48 M28 L68"},
    {"J", "M30 L80 M60 L66 Q6838 Q0806"},
    {"K", "M00 L08 M70 L04 L78"},
    {"L", "M10 L18 L78"},
    {"M", "M08 L00 L45 L80 L88"},
    {"N", "M08 L00 L88 L80"},
    {"O", "M40 Q8084 Q8848 Q0804 Q0040"},
    {"P", "M08 L00 L40 Q8082 Q8444 L04"},
    {"Q", "M40 Q8084 Q8848 Q0804 Q0040 M55 L88"},
    {"R", "M08 L00 L40 Q8082 Q8444 L04 M34 L88"},
    {"S", "M71 Q6040 Q0002 Q0444 Q8486 Q8848 Q1807"},
    {"T", "M00 L80 M40 L48"},
    {"U", "M00 L05 Q0848 Q8885 L80"},
    {"V", "M00 L48 L80"},
    {"W", "M00 L28 L43 L68 L80"},
    {"X", "M00 L88 M80 L08"},
    {"Y", "M00 L44 L80 M44 L48"},
    {"Z", "M00 L80 L08 L88"},
};

constexpr Drawing kFrames[] = {
    {"circle", "M40 Q8084 Q8848 Q0804 Q0040"},
    {"square", "M00 L80 L88 L08 L00"},
    {"rails", "M00 L80 M08 L88"},
    {"corners", "M20 L00 L02 M60 L80 L82 M86 L88 L68 M28 L08 L06"},
    {"hexagon", "M20 L60 L84 L68 L28 L04 L20"},
    {"cup", "M00 L08 L88 L80"},
    {"brackets", "M10 L00 L08 L18 M70 L80 L88 L78"},
    {"shelf", "M80 L88 L08"},
};

GlyphNode node(int column, int row, bool control) {
  return {static_cast<float>(column) / 8 - 0.5f, static_cast<float>(row) / 8 - 0.5f, control};
}

GlyphShape parse(const Drawing& drawing) {
  GlyphShape shape{drawing.name, {}};
  const std::string_view path = drawing.path;
  for (size_t i = 0; i < path.size();) {
    const char command = path[i++];
    if (command == ' ') continue;
    const auto point = [&](bool control) {
      const int column = path.at(i) - '0', row = path.at(i + 1) - '0';
      SPARSIGHT_CHECK(column >= 0 && column <= 8 && row >= 0 && row <= 8);
      i += 2;
      return node(column, row, control);
    };
    if (command == 'M') shape.strokes.emplace_back();
    if (command == 'Q') shape.strokes.back().push_back(point(true));
    shape.strokes.back().push_back(point(false));
  }
  return shape;
}

template <size_t N>
std::vector<GlyphShape> parse_all(const Drawing (&drawings)[N]) {
  std::vector<GlyphShape> shapes;
  for (const Drawing& drawing : drawings) shapes.push_back(parse(drawing));
  return shapes;
}

// A walk over 5 or 6 distinct nodes of a 3x3 lattice. `edges` receives its edges, so that no two shapes are equal.
GlyphShape walk(int64_t index, uint64_t attempt, std::set<std::pair<int, int>>& edges) {
  RandomStream random(static_cast<uint64_t>(index), "glyphs.shape", attempt);
  std::array<int, 9> nodes{0, 1, 2, 3, 4, 5, 6, 7, 8};
  shuffle(nodes, random);
  const int length = 5 + static_cast<int>(random.below(2));
  GlyphStroke stroke;
  for (int i = 0; i < length; ++i) {
    const int column = nodes[i] % 3 * 4, row = nodes[i] / 3 * 4;
    if (i > 0) {
      edges.insert(std::minmax(nodes[i - 1], nodes[i]));
      const int from_column = nodes[i - 1] % 3 * 4, from_row = nodes[i - 1] / 3 * 4;
      if (from_column != column && from_row != row && random.below(2)) stroke.push_back(node(column, from_row, true));
    }
    stroke.push_back(node(column, row, false));
  }
  return {"g" + std::to_string(index), {stroke}};
}

}  // namespace

const std::vector<GlyphShape>& hand_made_glyphs() {
  static const std::vector<GlyphShape> shapes = parse_all(kSigns);
  return shapes;
}

const std::vector<GlyphShape>& glyph_frames() {
  static const std::vector<GlyphShape> shapes = parse_all(kFrames);
  return shapes;
}

std::vector<GlyphShape> glyph_shapes(int64_t count) {
  const auto& hand_made = hand_made_glyphs();
  std::vector<GlyphShape> shapes(hand_made.begin(),
                                 hand_made.begin() + std::min<int64_t>(count, std::ssize(hand_made)));
  std::set<std::set<std::pair<int, int>>> known;
  while (std::ssize(shapes) < count) {
    for (uint64_t attempt = 0;; ++attempt) {
      std::set<std::pair<int, int>> edges;
      GlyphShape shape = walk(std::ssize(shapes), attempt, edges);
      if (!known.insert(edges).second) continue;
      shapes.push_back(std::move(shape));
      break;
    }
  }
  return shapes;
}

}  // namespace sparsight
