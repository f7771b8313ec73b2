#include "sparsight/data/sets/planted.h"

#include <cmath>

#include <ATen/ops/empty.h>

#include "sparsight/core/error.h"
#include "sparsight/core/random.h"
#include "sparsight/data/sets/glyph_painter.h"

namespace sparsight {
namespace {

constexpr int64_t kOthers = 16;  // distractor glyphs
constexpr int64_t kMinCell = 8;
constexpr const char* kPapers[] = {"inverted", "clean"};  // styles: dark, bright

class PlantedSet final : public DataSet {
 public:
  PlantedSet(DataInfo info, const PlantedOptions& options, std::string part, int64_t size, double correlation)
      : info_(std::move(info)),
        options_(options),
        part_(std::move(part)),
        size_(size),
        correlation_(correlation),
        shapes_(glyph_shapes(options.classes + kOthers)) {}

  const DataInfo& info() const override { return info_; }
  int64_t size() const override { return size_; }
  int64_t label(int64_t index) const override { return index % options_.classes; }

  // Image j of a class goes against the correlation if it increases the rounded-down number of such images.
  int64_t domain(int64_t index) const override {
    const int64_t j = index / options_.classes;
    const auto against = [&](int64_t n) {
      return static_cast<int64_t>(std::floor(static_cast<double>(n) * (1 - correlation_) + 1e-9));
    };
    const int64_t usual = label(index) % 2;
    return against(j + 1) > against(j) ? 1 - usual : usual;
  }

  Sample get(int64_t index) const override {
    RandomStream random(static_cast<uint64_t>(options_.seed), "planted." + part_, static_cast<uint64_t>(index));
    Sample sample;
    sample.label = label(index);
    sample.domain = domain(index);
    sample.id = cat(part_, "/", index);
    const int64_t grid = options_.grid, position = random.below(grid * grid), side = info_.height / grid;
    sample.attributes = {static_cast<float>(position)};
    sample.image = at::empty({3, info_.height, info_.width}, at::kByte);
    for (int64_t cell = 0; cell < grid * grid; ++cell) {
      GlyphPicture picture;
      const int64_t shape = cell == position ? sample.label : options_.classes + random.below(kOthers);
      picture.glyph = &shapes_[static_cast<size_t>(shape)];
      picture.domain = kPapers[sample.domain];
      GlyphCanvas canvas(side);
      paint_glyph(picture, RandomStream(random.seed(), "cell", static_cast<uint64_t>(cell)), canvas);
      at::Tensor glyph = at::empty({3, side, side}, at::kByte);
      canvas.write(glyph.data_ptr<uint8_t>(), 3);
      sample.image.narrow(1, cell / grid * side, side).narrow(2, cell % grid * side, side).copy_(glyph);
    }
    return sample;
  }

 private:
  DataInfo info_;
  PlantedOptions options_;
  std::string part_;
  int64_t size_;
  double correlation_;
  std::vector<GlyphShape> shapes_;
};

}  // namespace

void PlantedOptions::declare(OptionSet& set) {
  set.integer("classes", &classes, {2, 100}, "glyphs that determine the label");
  set.integer("side", &side, {16, 512}, "height and width in pixels");
  set.integer("grid", &grid, {1, 32}, "glyphs per side of an image");
  set.real(
      "correlation", &correlation, {0.5, 1},
      "fraction of training images whose background goes with the class: dark for even classes, bright for odd ones");
  set.integer("train", &train, {1, 100000000},
              "images in the training split; a larger number adds images after the same first ones");
  set.integer("validation", &validation, {1, 100000000}, "images in the validation split");
  set.integer("test", &test, {1, 100000000}, "images in the test split");
  set.integer("seed", &seed, {0, INT64_MAX}, "seed of the images; run.seed does not change them");
}

DataSplits make_planted(const PlantedOptions& options, const DataContext&) {
  if (options.side % options.grid != 0 || options.side / options.grid < kMinCell)
    fail_usage("data.side = ", options.side, " is not data.grid = ", options.grid, " cells of at least ", kMinCell,
               " pixels; choose a multiple");
  DataInfo info;
  info.name = "planted (synthetic substitute)";
  for (const GlyphShape& shape : glyph_shapes(options.classes)) info.classes.push_back(shape.name);
  info.domains = {"dark paper", "bright paper"};
  info.attributes = {"cell"};
  info.height = info.width = options.side;
  const auto make_part = [&](const std::string& name, int64_t size, double correlation) {
    return std::make_shared<PlantedSet>(info, options, name, size, correlation);
  };
  return {make_part("train", options.train, options.correlation), make_part("validation", options.validation, 0.5),
          make_part("test", options.test, 0.5)};
}

}  // namespace sparsight
