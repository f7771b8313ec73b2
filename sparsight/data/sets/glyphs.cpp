#include "sparsight/data/sets/glyphs.h"

#include <algorithm>

#include <ATen/ops/empty.h>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/register_data.h"
#include "sparsight/data/sets/glyph_painter.h"

namespace sparsight {
namespace {

// Labels and domains cycle, so that every prefix of a split is as balanced as possible.
class GlyphsDataSet final : public DataSet {
 public:
  GlyphsDataSet(const GlyphsOptions& options, const std::string& split, int64_t size,
                const std::vector<std::string>& domains)
      : options_(options),
        split_(split),
        purpose_("glyphs." + split),
        size_(size),
        shapes_(glyph_shapes(options.classes)) {
    info_.name = "glyphs";
    for (const GlyphShape& shape : shapes_) info_.classes.push_back(shape.name);
    info_.domains = options.domains;
    const int64_t super_classes = std::min(options.super_classes, options.classes);
    for (int64_t i = 0; i < super_classes; ++i) info_.super_classes.push_back(glyph_frames()[i].name);
    for (int64_t label = 0; super_classes > 0 && label < options.classes; ++label)
      info_.super_class_of.push_back(label % super_classes);
    info_.channels = options.channels;
    info_.height = info_.width = options.side;
    for (const std::string& domain : domains)
      domains_.push_back(std::find(info_.domains.begin(), info_.domains.end(), domain) - info_.domains.begin());
  }

  const DataInfo& info() const override { return info_; }
  int64_t size() const override { return size_; }
  int64_t label(int64_t index) const override { return index / std::ssize(domains_) % options_.classes; }
  int64_t domain(int64_t index) const override { return domains_[index % std::ssize(domains_)]; }

  Sample get(int64_t index) const override {
    Sample sample;
    sample.label = label(index);
    sample.domain = domain(index);
    sample.id = cat(split_, "/", index);
    GlyphPicture picture;
    picture.glyph = &shapes_[sample.label];
    if (!info_.super_classes.empty()) picture.frame = &glyph_frames()[info_.super_class_of[sample.label]];
    picture.domain = info_.domains[sample.domain];
    picture.distractors = options_.distractors;
    GlyphCanvas canvas(options_.side);
    paint_glyph(picture, RandomStream(static_cast<uint64_t>(options_.seed), purpose_, static_cast<uint64_t>(index)),
                canvas);
    sample.image = at::empty({options_.channels, options_.side, options_.side}, at::kByte);
    canvas.write(sample.image.data_ptr<uint8_t>(), options_.channels);
    return sample;
  }

 private:
  GlyphsOptions options_;
  std::string split_, purpose_;
  int64_t size_;
  std::vector<GlyphShape> shapes_;
  DataInfo info_;
  std::vector<int64_t> domains_;  // those of this split, as indices into info_.domains
};

void check_domains(const std::string& option, const std::vector<std::string>& names,
                   const std::vector<std::string>& known) {
  for (const std::string& name : names)
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail_usage("data.", option, " has the unknown domain \"", printable(name), "\"", suggestion(name, known));
  for (size_t i = 0; i < names.size(); ++i)
    if (std::find(names.begin(), names.begin() + i, names[i]) != names.begin() + i)
      fail_usage("data.", option, " names the domain \"", names[i], "\" twice");
}

}  // namespace

void GlyphsOptions::declare(OptionSet& set) {
  set.integer("classes", &classes, {2, 1000}, "number of glyphs; the first 42 are hand-made, the others generated");
  set.integer("super_classes", &super_classes, {0, 8}, "number of frame shapes; 0: larger glyphs without frames");
  set.integer("side", &side, {16, 512}, "height and width in pixels");
  set.integer("channels", &channels, {1, 3}, "1 (grey) or 3 (RGB)");
  set.integer("train", &train, {1, 100000000}, "images in the training split");
  set.integer("validation", &validation, {1, 100000000}, "images in the validation split");
  set.integer("test", &test, {1, 100000000}, "images in the test split");
  set.integer("distractors", &distractors, {0, 32}, "maximum number of pieces of other glyphs scattered over an image");
  set.strings("domains", &domains, "styles: clean, textured, sketch, inverted");
  set.strings("train_domains", &train_domains, "domains of the training and validation splits; empty: all");
  set.strings("test_domains", &test_domains, "domains of the test split; empty: all");
  set.integer("seed", &seed, {0, INT64_MAX}, "seed of the images; run.seed does not change them");
}

DataSplits make_glyphs(const GlyphsOptions& options, const DataContext&) {
  if (options.channels == 2) fail_usage("data.channels must be 1 or 3, got 2");
  if (options.domains.empty()) fail_usage("data.domains is empty; name at least one of ", join(glyph_domains()));
  check_domains("domains", options.domains, glyph_domains());
  check_domains("train_domains", options.train_domains, options.domains);
  check_domains("test_domains", options.test_domains, options.domains);
  const auto& train = options.train_domains.empty() ? options.domains : options.train_domains;
  const auto& test = options.test_domains.empty() ? options.domains : options.test_domains;
  return {std::make_shared<GlyphsDataSet>(options, "train", options.train, train),
          std::make_shared<GlyphsDataSet>(options, "validation", options.validation, train),
          std::make_shared<GlyphsDataSet>(options, "test", options.test, test)};
}

}  // namespace sparsight
