#include "sparsight/data/sets/composite.h"

#include <algorithm>

#include <ATen/ops/empty.h>

#include "sparsight/core/error.h"
#include "sparsight/core/random.h"
#include "sparsight/data/sets/array_set.h"
#include "sparsight/data/sets/data_root.h"
#include "sparsight/data/sets/glyphs.h"
#include "sparsight/data/sets/mnist.h"

namespace sparsight {
namespace {

constexpr int64_t kDigits = 10;

// Raises Error if a digit has no images.
CellSampler cells_of(const LabelledArray& array) {
  check_labels(array.labels, kDigits, array.file);
  if (array.images.size(0) != std::ssize(array.labels))
    fail(array.file, " has ", array.labels.size(), " labels for ", array.images.size(0),
         " images; the files do not match");
  std::vector<std::vector<int64_t>> of_digit(kDigits);
  for (size_t i = 0; i < array.labels.size(); ++i) of_digit[array.labels[i]].push_back(static_cast<int64_t>(i));
  for (int64_t digit = 0; digit < kDigits; ++digit)
    if (of_digit[digit].empty()) fail(array.file, " has no image of a ", digit, "; all ten digits are needed");
  if (array.images[0].numel() == 0) fail(array.file, ": the images have no pixels");
  return [images = array.images, of_digit = std::move(of_digit)](int64_t digit, RandomStream& random) {
    return images.select(0, of_digit[digit][random.below(std::ssize(of_digit[digit]))]);
  };
}

// The synthetic substitute for MNIST: ten glyphs of its size.
CompositeCells glyph_cells(int64_t seed) {
  GlyphsOptions options;
  options.classes = kDigits;
  options.super_classes = 0;
  options.side = 28;
  options.channels = 1;
  options.train = options.test = 1000 * kDigits;
  options.distractors = 0;
  options.domains = {"clean"};
  options.seed = seed;
  const DataSplits set = make_glyphs(options, {});
  const auto sampler = [](const DataSetPtr& glyphs) -> CellSampler {
    return [glyphs](int64_t digit, RandomStream& random) {  // labels cycle
      return glyphs->get(digit + kDigits * random.below(glyphs->size() / kDigits)).image;
    };
  };
  return {sampler(set.train), sampler(set.test)};
}

void check_digits(const CompositeOptions& options) {
  std::vector<int64_t> sorted = options.digits;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) fail_usage("data.digits names a digit twice");
  if (std::ssize(sorted) < 2 || std::ssize(sorted) >= kDigits)
    fail_usage("data.digits must name 2 to 9 of the ten digits, got ", sorted.size());
}

class CompositeSet final : public DataSet {
 public:
  CompositeSet(DataInfo info, const CompositeOptions& options, std::string part, int64_t size, CellSampler sampler)
      : info_(std::move(info)),
        options_(options),
        part_(std::move(part)),
        size_(size),
        sample_cell_(std::move(sampler)) {
    for (int64_t digit = 0; digit < kDigits; ++digit)
      if (std::find(options_.digits.begin(), options_.digits.end(), digit) == options_.digits.end())
        others_.push_back(digit);
    RandomStream random(0, "size");
    const at::Tensor cell = sample_cell_(0, random);
    info_.channels = cell.size(0);
    info_.height = options_.grid * cell.size(1);
    info_.width = options_.grid * cell.size(2);
  }

  const DataInfo& info() const override { return info_; }
  int64_t size() const override { return size_; }
  int64_t label(int64_t index) const override { return index % std::ssize(options_.digits); }

  Sample get(int64_t index) const override {
    RandomStream random(static_cast<uint64_t>(options_.seed), "composite." + part_, static_cast<uint64_t>(index));
    Sample sample;
    sample.label = label(index);
    sample.id = cat(part_, "/", index);
    const int64_t grid = options_.grid, position = random.below(grid * grid);
    sample.attributes = {static_cast<float>(position)};
    sample.image = at::empty({info_.channels, info_.height, info_.width}, at::kByte);
    const int64_t height = info_.height / grid, width = info_.width / grid;
    for (int64_t cell = 0; cell < grid * grid; ++cell) {
      const int64_t digit =
          cell == position ? options_.digits[sample.label] : others_[random.below(std::ssize(others_))];
      sample.image.narrow(1, cell / grid * height, height)
          .narrow(2, cell % grid * width, width)
          .copy_(sample_cell_(digit, random));
    }
    return sample;
  }

 private:
  DataInfo info_;
  CompositeOptions options_;
  std::string part_;
  int64_t size_;
  CellSampler sample_cell_;
  std::vector<int64_t> others_;
};

}  // namespace

void CompositeOptions::declare(OptionSet& set) {
  set.choice("cells", &cells, {"mnist", "glyphs"}, "MNIST digits, or ten glyphs of the same size, which need no files");
  set.text("root", &root, "folder of MNIST's idx files; empty: mnist below SPARSIGHT_DATA or data/");
  set.integer("grid", &grid, {1, 64}, "cells per side of an image");
  set.integers("digits", &digits, {0, kDigits - 1}, "digits that determine the label; all others are distractors");
  set.integer("train", &train, {1, 100000000},
              "images in the training split; a larger number adds images after the same first ones");
  set.integer("validation", &validation, {1, 100000000}, "images in the validation split");
  set.integer("test", &test, {1, 100000000}, "images in the test split");
  set.integer("seed", &seed, {0, INT64_MAX}, "seed of the images; run.seed does not change them");
}

CompositeCells composite_cells(const CompositeOptions& options) {
  check_digits(options);
  if (options.cells == "glyphs") return glyph_cells(options.seed);
  const std::string root = data_root(options.root, "mnist");
  return {cells_of(read_mnist_part(root, "train")), cells_of(read_mnist_part(root, "test"))};
}

DataSplits make_composite(const CompositeOptions& options, const DataContext&) {
  return composite_of(options, composite_cells(options));
}

DataSplits composite_of(const CompositeOptions& options, const CompositeCells& cells) {
  check_digits(options);
  DataInfo info;
  info.name = options.cells == "mnist" ? "composite" : "composite of glyphs";
  info.domains = {info.name};
  info.attributes = {"cell"};
  info.cell_grid = {options.grid, options.grid};
  for (const int64_t digit : options.digits) {
    info.super_class_of.push_back(std::ssize(info.classes));  // one for each class, for super-class guidance
    info.classes.push_back(std::to_string(digit));
  }
  info.super_classes = info.classes;
  const auto part_of = [&](const std::string& name, int64_t size, const CellSampler& sampler) {
    return std::make_shared<CompositeSet>(info, options, name, size, sampler);
  };
  return {part_of("train", options.train, cells.train), part_of("validation", options.validation, cells.train),
          part_of("test", options.test, cells.test)};
}

}  // namespace sparsight
