#include "sparsight/data/sets/hierarchy.h"

#include <ATen/ops/empty.h>

#include "sparsight/core/error.h"
#include "sparsight/data/register_data.h"
#include "sparsight/data/sets/hierarchy_painter.h"

namespace sparsight {
namespace {

constexpr int64_t kMaxGroups = 48;  // colours times shapes

// About as many colours as shapes, so that a group needs both.
int64_t count_colours(int64_t groups) {
  const auto all = static_cast<int64_t>(hierarchy_colours().size());
  int64_t colours = 1;
  while (colours < all && colours * colours < groups) ++colours;
  return colours;
}

class HierarchySet final : public DataSet {
 public:
  HierarchySet(const HierarchyOptions& options, const std::string& split, int64_t size)
      : options_(options), split_(split), purpose_("hierarchy." + split), size_(size) {
    info_.name = "hierarchy";
    info_.domains = {"generated"};
    info_.height = info_.width = options.side;
    for (int64_t group = 0; group < options.groups; ++group) {
      const std::string name =
          cat(hierarchy_colours()[group_colour(group)], " ", hierarchy_shapes()[group_shape(group)]);
      info_.super_classes.push_back(name);
      for (int64_t i = 0; i < options.classes_per_group; ++i) {
        info_.classes.push_back(cat(name, " ", i));
        info_.super_class_of.push_back(group);
      }
      for (const TextureTile& tile : group_textures(group, options.classes_per_group)) tiles_.push_back(tile);
    }
  }

  const DataInfo& info() const override { return info_; }
  int64_t size() const override { return size_; }
  int64_t label(int64_t index) const override { return index % std::ssize(tiles_); }

  Sample get(int64_t index) const override {
    Sample sample;
    sample.label = label(index);
    sample.id = cat(split_, "/", index);
    const int64_t group = info_.super_class_of[static_cast<size_t>(sample.label)];
    const HierarchyPicture picture{.colour = group_colour(group),
                                   .shape = group_shape(group),
                                   .tile = tiles_[static_cast<size_t>(sample.label)],
                                   .shifts = options_.shifts,
                                   .contrast = options_.contrast,
                                   .noise = options_.noise};
    sample.image = at::empty({3, options_.side, options_.side}, at::kByte);
    paint_hierarchy(picture, RandomStream(static_cast<uint64_t>(options_.seed), purpose_, static_cast<uint64_t>(index)),
                    options_.side, sample.image.data_ptr<uint8_t>());
    return sample;
  }

 private:
  size_t group_colour(int64_t group) const { return static_cast<size_t>(group % count_colours(options_.groups)); }
  size_t group_shape(int64_t group) const { return static_cast<size_t>(group / count_colours(options_.groups)); }

  HierarchyOptions options_;
  std::string split_, purpose_;
  int64_t size_;
  DataInfo info_;
  std::vector<TextureTile> tiles_;  // of each class
};

}  // namespace

void HierarchyOptions::declare(OptionSet& set) {
  set.integer("groups", &groups, {2, kMaxGroups}, "super-classes: pairs of a colour and a shape");
  set.integer("classes_per_group", &classes_per_group, {2, kMaxTextures}, "textures of each group, its classes");
  set.integer("side", &side, {16, 512}, "height and width in pixels");
  set.integer("shifts", &shifts, {1, kTileSide},
              "positions of a texture's tile on each axis, of which every image has one; more are harder");
  set.real("contrast", &contrast, {0, 0.5}, "mean contrast of the textures; lower is harder");
  set.real("noise", &noise, {0, 255}, "maximum noise of a pixel, in levels of 255; higher is harder");
  set.integer("train", &train, {1, 100000000}, "images in the training split");
  set.integer("validation", &validation, {1, 100000000}, "images in the validation split");
  set.integer("test", &test, {1, 100000000}, "images in the test split");
  set.integer("seed", &seed, {0, INT64_MAX}, "seed of the images; run.seed does not change them");
}

DataSplits make_hierarchy(const HierarchyOptions& options, const DataContext&) {
  return {std::make_shared<HierarchySet>(options, "train", options.train),
          std::make_shared<HierarchySet>(options, "validation", options.validation),
          std::make_shared<HierarchySet>(options, "test", options.test)};
}

}  // namespace sparsight
