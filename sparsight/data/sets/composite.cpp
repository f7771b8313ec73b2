#include "sparsight/data/sets/composite.h"

#include <algorithm>
#include <numeric>

#include <ATen/ops/empty.h>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

// The classes that determine the label, in label order. Raises UsageError for those that the cells do not have.
std::vector<int64_t> label_classes(const CompositeOptions& options, const CompositeCells& cells) {
  std::vector<int64_t> digits = options.digits;
  const int64_t classes = std::ssize(cells.classes);
  if (digits.empty()) {
    digits.resize(cells.classes.size());
    std::iota(digits.begin(), digits.end(), 0);
  }
  std::vector<int64_t> sorted = digits;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) fail_usage("data.digits names a class twice");
  if (sorted.back() >= classes)
    fail_usage("data.digits names class ", sorted.back(), ", but ", cells.name, " has the classes 0 to ", classes - 1);
  if (options.multi_label && !cells.train_distractors.empty())
    fail_usage(
        "data.multi_label has no data.distractors: all cells show classes of data.digits; leave out one of them");
  const bool distracted = !options.multi_label && cells.train_distractors.empty();
  const int64_t most = distracted ? classes - 1 : classes;
  if (std::ssize(sorted) < 2 || std::ssize(sorted) > most)
    fail_usage("data.digits must name 2 to ", most, " of the ", classes, " classes of ", cells.name, ", got ",
               sorted.size(), distracted ? "; for all of them, name other data.distractors" : "");
  return digits;
}

// What the images of one split are composed of.
struct CompositeSource {
  CellPool cells;
  std::vector<CellPool> distractors;
  std::vector<int64_t> digits;  // [K]
  std::vector<int64_t> others;  // classes of the distractors, where they come from `cells`
};

CompositeSource make_source(const CellPool& cells, const std::vector<CellPool>& distractors,
                            const std::vector<int64_t>& digits, const CompositeCells& all, const char* split,
                            bool multi_label) {
  CompositeSource source{cells, distractors, digits, {}};
  for (const int64_t digit : digits)
    if (!cells.has(digit))
      fail("the ", split, " split of ", all.name, " has no image of class ", digit, " (", all.classes[digit],
           "), which data.digits names; use another class or more images");
  if (multi_label) return source;
  for (int64_t k = 0; distractors.empty() && k < std::ssize(all.classes); ++k)
    if (cells.has(k) && std::find(digits.begin(), digits.end(), k) == digits.end()) source.others.push_back(k);
  if (distractors.empty() && source.others.empty())
    fail("the ", split, " split of ", all.name,
         " has images of the classes in data.digits only, none for the other "
         "cells; name data.distractors");
  return source;
}

class CompositeSet final : public DataSet {
 public:
  CompositeSet(DataInfo info, const CompositeOptions& options, std::string part, int64_t size, CompositeSource source)
      : info_(std::move(info)),
        grid_(options.grid),
        seed_(static_cast<uint64_t>(options.seed)),
        part_(std::move(part)),
        size_(size),
        source_(std::move(source)) {}

  const DataInfo& info() const override { return info_; }
  int64_t size() const override { return size_; }
  int64_t label(int64_t index) const override {
    return info_.multi_label ? labels(index).front() : index % std::ssize(source_.digits);
  }

  std::vector<int64_t> labels(int64_t index) const override {
    if (!info_.multi_label) return DataSet::labels(index);
    std::vector<int64_t> labels = shown_classes(index);
    std::sort(labels.begin(), labels.end());
    labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
    return labels;
  }

  Sample get(int64_t index) const override {
    if (info_.multi_label) return multi_label_sample(index);
    RandomStream random(seed_, "composite." + part_, static_cast<uint64_t>(index));
    Sample sample;
    sample.label = label(index);
    sample.id = cat(part_, "/", index);
    const int64_t position = random.below(grid_ * grid_);
    sample.attributes = {static_cast<float>(position)};
    sample.image = at::empty({info_.channels, info_.height, info_.width}, at::kByte);
    for (int64_t cell = 0; cell < grid_ * grid_; ++cell)
      cell_view(sample.image, cell)
          .copy_(cell == position ? source_.cells.sample(source_.digits[sample.label], random) : distractor(random));
    return sample;
  }

 private:
  at::Tensor cell_view(const at::Tensor& image, int64_t cell) const {
    const int64_t height = info_.height / grid_, width = info_.width / grid_;
    return image.narrow(1, cell / grid_ * height, height).narrow(2, cell % grid_ * width, width);
  }

  // The class that each cell of multi-label data shows.
  std::vector<int64_t> shown_classes(int64_t index) const {
    RandomStream random(seed_, "composite.labels." + part_, static_cast<uint64_t>(index));
    std::vector<int64_t> shown;
    for (int64_t cell = 0; cell < grid_ * grid_; ++cell) shown.push_back(random.below(std::ssize(source_.digits)));
    return shown;
  }

  Sample multi_label_sample(int64_t index) const {
    RandomStream random(seed_, "composite." + part_, static_cast<uint64_t>(index));
    const std::vector<int64_t> shown = shown_classes(index);
    Sample sample;
    sample.labels = labels(index);
    sample.label = sample.labels.front();
    sample.id = cat(part_, "/", index);
    sample.image = at::empty({info_.channels, info_.height, info_.width}, at::kByte);
    for (int64_t cell = 0; cell < grid_ * grid_; ++cell)
      cell_view(sample.image, cell).copy_(source_.cells.sample(source_.digits[shown[cell]], random));
    return sample;
  }

  at::Tensor distractor(RandomStream& random) const {
    if (source_.distractors.empty())
      return source_.cells.sample(source_.others[random.below(std::ssize(source_.others))], random);
    const int64_t count = std::ssize(source_.distractors);
    return source_.distractors[count > 1 ? random.below(count) : 0].sample_any(random);
  }

  DataInfo info_;
  int64_t grid_;
  uint64_t seed_;
  std::string part_;
  int64_t size_;
  CompositeSource source_;
};

}  // namespace

void CompositeOptions::declare(OptionSet& set) {
  CellOptions::declare(set);
  set.integer("grid", &grid, {1, 64}, "cells per side of an image");
  set.integers("digits", &digits, {0, 1000000},
               "classes of the cells that determine the label, by number (of MNIST: the digits); all others are "
               "distractors; empty: all classes, with `distractors` from elsewhere");
  set.flag(
      "multi_label", &multi_label,
      "multi-label data: every cell shows one of `digits` at random, and an image has the labels of all its cells");
  set.integer("train", &train, {1, 100000000},
              "images in the training split; a larger number adds images after the same first ones");
  set.integer("validation", &validation, {1, 100000000}, "images in the validation split");
  set.integer("test", &test, {1, 100000000}, "images in the test split");
  set.integer("seed", &seed, {0, INT64_MAX}, "seed of the images; run.seed does not change them");
}

CompositeCells composite_cells(const CompositeOptions& options, const DataContext& context) {
  return read_cells(options, options.seed, context);
}

DataSplits make_composite(const CompositeOptions& options, const DataContext& context) {
  return compose_cells(options, composite_cells(options, context));
}

DataSplits compose_cells(const CompositeOptions& options, const CompositeCells& cells) {
  const std::vector<int64_t> digits = label_classes(options, cells);
  DataInfo info;
  info.name = cells.name == "mnist" ? "composite" : "composite of " + cells.name;
  info.domains = {info.name};
  info.multi_label = options.multi_label;
  if (!options.multi_label) {
    info.attributes = {"cell"};
    info.cell_grid = {options.grid, options.grid};
  }
  info.channels = cells.shape.channels;
  info.height = options.grid * cells.shape.height;
  info.width = options.grid * cells.shape.width;
  for (const int64_t digit : digits) {
    // One super-class for each class, for guidance.
    if (!options.multi_label) info.super_class_of.push_back(std::ssize(info.classes));
    info.classes.push_back(cells.classes[digit]);
  }
  if (!options.multi_label) info.super_classes = info.classes;
  const CompositeSource train = make_source(cells.train, cells.train_distractors, digits, cells, "training",
                                            options.multi_label),
                        test =
                            make_source(cells.test, cells.test_distractors, digits, cells, "test", options.multi_label);
  const auto make_part = [&](const std::string& name, int64_t size, const CompositeSource& source) {
    return std::make_shared<CompositeSet>(info, options, name, size, source);
  };
  return {make_part("train", options.train, train), make_part("validation", options.validation, train),
          make_part("test", options.test, test)};
}

}  // namespace sparsight
