#include "sparsight/data/sets/cifar_noise.h"

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/core/random.h"
#include "sparsight/data/sets/backgrounds.h"
#include "sparsight/data/sets/class_pictures.h"
#include "sparsight/data/sets/data_root.h"

namespace sparsight {
namespace {

constexpr int64_t kPasted = 16, kPlaces = kBackgroundSide - kPasted + 1;

// The sources of a split.
struct Ingredients {
  ClassPictures pictures;
  BackgroundSampler background;
  std::string part;
  int64_t seed = 0;
};

class CifarNoiseSet final : public DataSet {
 public:
  CifarNoiseSet(DataInfo info, Ingredients of, int64_t size)
      : info_(std::move(info)), of_(std::move(of)), size_(size) {}

  const DataInfo& info() const override { return info_; }
  int64_t size() const override { return size_; }
  int64_t label(int64_t index) const override { return index % std::ssize(info_.classes); }

  Sample get(int64_t index) const override {
    RandomStream random(static_cast<uint64_t>(of_.seed), "cifar_noise." + of_.part, static_cast<uint64_t>(index));
    const int64_t row = random.below(kPlaces), column = random.below(kPlaces);
    const Sample picture = of_.pictures.get(label(index), index / std::ssize(info_.classes));
    Sample sample;
    sample.label = picture.label;
    sample.id = cat(of_.part, "/", index);
    sample.attributes = {static_cast<float>(row), static_cast<float>(column)};
    sample.image = of_.background(random).clone();
    sample.image.narrow(1, row, kPasted).narrow(2, column, kPasted).copy_(halved(picture.image));
    return sample;
  }

 private:
  DataInfo info_;
  Ingredients of_;
  int64_t size_;
};

Backgrounds make_backgrounds(const CifarNoiseOptions& options) {
  const bool none = options.backgrounds.empty();
  if (options.backgrounds == "synthetic" || (none && options.source == "glyphs"))
    return generated_backgrounds(options.seed);
  if (!none) return folder_backgrounds(data_root(options.backgrounds, ""), options.background_limit);
  fail_usage(
      "data.backgrounds is empty; set it to a folder of photographs (the paper uses ImageNet's plants), or to "
      "synthetic "
      "for generated textures");
}

}  // namespace

void CifarNoiseOptions::declare(OptionSet& set) {
  set.choice("source", &source, {"cifar10", "glyphs"},
             "what is pasted: CIFAR-10, or generated images, which need no files");
  set.text("root", &root, "folder of CIFAR-10's .bin files; empty: cifar10 below SPARSIGHT_DATA or data/");
  set.text(
      "backgrounds", &backgrounds,
      "folder of photographs, searched recursively; synthetic (or empty with source = glyphs): generated textures");
  set.integer("background_limit", &background_limit, {2, 1000000}, "maximum number of photographs read, evenly spaced");
  set.integer("train", &train, {0, 1000000},
              "training images; a larger number adds images after the same first ones; 0 for all");
  set.integer("test", &test, {0, 1000000}, "test images; 0 for all");
  set.integer("seed", &seed, {0, INT64_MAX}, "seed of positions and backgrounds; run.seed does not change them");
}

DataSplits make_cifar_noise(const CifarNoiseOptions& options, const DataContext&) {
  const Backgrounds backgrounds = make_backgrounds(options);
  const PictureParts pictures = picture_parts(options.source, options.root, options.seed);
  DataInfo info;
  info.name = options.source == "glyphs"           ? "cifar_noise (glyphs as a synthetic substitute)"
              : options.backgrounds == "synthetic" ? "cifar_noise (drawn backgrounds as a synthetic substitute)"
                                                   : "cifar_noise";
  info.classes = pictures.train.info().classes;
  info.domains = {info.name};
  info.attributes = {"row", "column"};
  info.height = info.width = kBackgroundSide;
  const auto make_part = [&](const ClassPictures& of, const BackgroundSampler& background, const std::string& part,
                             int64_t requested) {
    const int64_t classes = std::ssize(info.classes);
    int64_t minimum = of.count(0);
    for (int64_t label = 1; label < classes; ++label) minimum = std::min(minimum, of.count(label));
    return std::make_shared<CifarNoiseSet>(info, Ingredients{of, background, part, options.seed},
                                           checked_count(requested, minimum, classes, part));
  };
  DataSplits parts;
  parts.train = make_part(pictures.train, backgrounds.train, "train", options.train);
  parts.test = make_part(pictures.test, backgrounds.test, "test", options.test);
  parts.validation = parts.test;
  parts.missing = "validation";
  return parts;
}

}  // namespace sparsight
