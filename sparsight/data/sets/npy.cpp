#include "sparsight/data/sets/npy.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/aminmax.h>

#include <algorithm>
#include <filesystem>

#include "sparsight/core/error.h"
#include "sparsight/data/known_superclasses.h"
#include "sparsight/data/label_sets.h"
#include "sparsight/data/readers/npy.h"
#include "sparsight/data/sets/array_set.h"
#include "sparsight/data/sets/data_root.h"

namespace sparsight {
namespace {

bool channels_at(const at::Tensor& images, int64_t axis) { return images.size(axis) == 1 || images.size(axis) == 3; }

// [N,C,H,W]
at::Tensor in_order(const at::Tensor& images, const std::string& layout, const std::string& file) {
  if (images.dim() == 3) return images.unsqueeze(1);
  if (images.dim() != 4) fail(file, ": images must have 3 or 4 axes, got ", images.dim());
  const bool first = layout != "hwc" && channels_at(images, 1), last = layout != "chw" && channels_at(images, 3);
  if (!first && !last)
    fail(file, ": images must be [N,C,H,W] or [N,H,W,C] with 1 or 3 channels, got ", cat(images.sizes()),
         layout == "auto" ? "" : cat(" with data.layout = ", layout));
  if (first && last)
    fail_usage(file, ": channels may be the second or the last axis of ", cat(images.sizes()),
               "; set data.layout to chw or hwc");
  return first ? images : images.permute({0, 3, 1, 2}).contiguous();
}

// uint8 values
at::Tensor as_bytes(const at::Tensor& images, const std::string& file) {
  if (images.scalar_type() == at::kBool)
    fail(file, ": images must be integers from 0 to 255 or floats from 0 to 1, got bool");
  if (images.scalar_type() == at::kByte || images.numel() == 0) return images.to(at::kByte);
  const auto [low, high] = at::aminmax(images);
  const bool real = images.is_floating_point();
  // A comparison that NaN fails too.
  if (!(low.item<double>() >= 0 && high.item<double>() <= (real ? 1 : 255)))
    fail(file, ": values must be ", real ? "0 to 1 (floats)" : "0 to 255 (integers)", ", they are ", low.item<double>(),
         " to ", high.item<double>());
  return (real ? images.mul(255).round() : images).to(at::kByte);
}

// values: [N,K], 1 for each class of an image and 0 elsewhere. Returns them as bool.
at::Tensor as_label_sets(const at::Tensor& values, const std::string& file) {
  if (values.size(1) < 2)
    fail(file, ": labels on 2 axes are [images, classes] with at least 2 classes, got ", cat(values.sizes()),
         "; class indices belong on 1 axis");
  const at::Tensor sets = values.eq(1), wrong = (sets.logical_or(values.eq(0))).logical_not();  // NaN is wrong too
  const auto first = [](const at::Tensor& flags) { return flags.nonzero()[0]; };
  if (wrong.any().item<bool>()) {
    const at::Tensor at = first(wrong);
    const int64_t i = at[0].item<int64_t>(), k = at[1].item<int64_t>();
    fail(file, ": labels on 2 axes must be 0 or 1, image ", i, " has ", values[i][k].item<double>(), " for class ", k,
         "; class indices belong on 1 axis");
  }
  const at::Tensor none = sets.any(1).logical_not();
  if (none.any().item<bool>())
    fail(file, ": image ", first(none)[0].item<int64_t>(),
         " has no class; every image needs at least one, so leave it out, or add a class for such images");
  return sets.contiguous();
}

LabelledArray read_part(const std::string& root, const std::string& stem, const std::string& layout,
                        const std::string& part) {
  const std::string images = root + "/" + stem + "images.npy", labels = root + "/" + stem + "labels.npy";
  LabelledArray array;
  array.images = as_bytes(in_order(read_npy(images), layout, printable(images)), printable(images));
  const at::Tensor values = read_npy(labels);
  if (values.dim() == 2)
    array.label_sets = as_label_sets(values, printable(labels));
  else if (values.dim() != 1 || values.is_floating_point())
    fail(printable(labels), ": labels must be integers on 1 axis, or 0 and 1 on 2 axes [images, classes]; got ",
         values.dim() == 1 ? "floats" : cat(values.dim(), " axes"));
  const at::Tensor wide =
      (array.label_sets.defined() ? first_classes(array.label_sets) : values).to(at::kLong).contiguous();
  array.labels.assign(wide.const_data_ptr<int64_t>(), wide.const_data_ptr<int64_t>() + wide.numel());
  array.part = part;
  array.file = printable(labels);
  return array;
}

// The columns of multi-label data are the classes, in all parts.
void check_label_sets(const LabelledArray& part, const LabelledArray& train, int64_t classes) {
  if (!part.images.defined()) return;
  if (part.label_sets.defined() != train.label_sets.defined())
    fail(part.file, " and ", train.file, ": one has several labels per image and the other one; store both on 2 axes");
  if (part.label_sets.defined() && part.label_sets.size(1) != classes)
    fail(part.file, " has labels for ", part.label_sets.size(1), " classes, there are ", classes,
         "; as many columns as class_names.txt has names, in all files");
}

}  // namespace

void NpyOptions::declare(OptionSet& set) {
  set.text("root", &root,
           "folder with images.npy and labels.npy, and optionally test_images.npy, test_labels.npy, class_names.txt");
  set.choice("layout", &layout, {"auto", "chw", "hwc"}, "where the channels are in images of 4 axes: second, or last");
  splits.declare(set);
}

DataSplits make_npy(const NpyOptions& options, const DataContext& context) {
  const std::string root = data_root(options.root, "");
  LabelledArray train = read_part(root, "", options.layout, "train"), test;
  if (std::filesystem::exists(root + "/test_images.npy")) test = read_part(root, "test_", options.layout, "test");
  DataInfo info;
  info.name = "npy";
  info.domains = {info.name};
  info.classes = read_names(root + "/class_names.txt");
  if (info.classes.empty() && train.label_sets.defined()) info.classes = number_names(train.label_sets.size(1));
  if (info.classes.empty()) {
    constexpr int64_t kMaxClasses = 1 << 20;
    check_labels(train.labels, kMaxClasses, train.file);
    const auto largest = std::max_element(train.labels.begin(), train.labels.end());
    info.classes = number_names(largest == train.labels.end() ? 0 : *largest + 1);
  }
  add_known_superclasses(info);
  for (const LabelledArray* part : {&train, &test}) check_label_sets(*part, train, std::ssize(info.classes));
  DataSplits parts;
  parts.train = std::make_shared<ArraySet>(info, std::move(train));
  if (test.images.defined()) parts.test = std::make_shared<ArraySet>(info, std::move(test));
  if (parts.test && parts.test->info().channels != parts.train->info().channels)
    fail(printable(root), ": the test images have ", parts.test->info().channels, " channels, the training images ",
         parts.train->info().channels);
  return make_splits(std::move(parts), options.splits, context);
}

}  // namespace sparsight
