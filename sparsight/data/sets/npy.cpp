#include "sparsight/data/sets/npy.h"

#include <ATen/ops/aminmax.h>

#include <algorithm>
#include <filesystem>

#include "sparsight/core/error.h"
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
  if (images.scalar_type() == at::kByte || images.numel() == 0) return images.to(at::kByte);
  const auto [low, high] = at::aminmax(images);
  const bool real = images.is_floating_point();
  // A comparison that NaN fails too.
  if (!(low.item<double>() >= 0 && high.item<double>() <= (real ? 1 : 255)))
    fail(file, ": values must be ", real ? "0 to 1 (floats)" : "0 to 255 (integers)", ", they are ", low.item<double>(),
         " to ", high.item<double>());
  return (real ? images.mul(255).round() : images).to(at::kByte);
}

LabelledArray read_part(const std::string& root, const std::string& stem, const std::string& layout,
                        const std::string& part) {
  const std::string images = root + "/" + stem + "images.npy", labels = root + "/" + stem + "labels.npy";
  LabelledArray array;
  array.images = as_bytes(in_order(read_npy(images), layout, printable(images)), printable(images));
  const at::Tensor values = read_npy(labels);
  if (values.dim() != 1 || values.is_floating_point())
    fail(printable(labels), ": labels must be integers on 1 axis, got ",
         values.is_floating_point() ? "floats" : cat(values.dim(), " axes"));
  const at::Tensor wide = values.to(at::kLong).contiguous();
  array.labels.assign(wide.const_data_ptr<int64_t>(), wide.const_data_ptr<int64_t>() + wide.numel());
  array.part = part;
  array.file = printable(labels);
  return array;
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
  if (info.classes.empty()) {
    constexpr int64_t kMaxClasses = 1 << 20;
    check_labels(train.labels, kMaxClasses, train.file);
    const auto largest = std::max_element(train.labels.begin(), train.labels.end());
    info.classes = number_names(largest == train.labels.end() ? 0 : *largest + 1);
  }
  DataSplits parts;
  parts.train = std::make_shared<ArraySet>(info, std::move(train));
  if (test.images.defined()) parts.test = std::make_shared<ArraySet>(info, std::move(test));
  if (parts.test && parts.test->info().channels != parts.train->info().channels)
    fail(printable(root), ": the test images have ", parts.test->info().channels, " channels, the training images ",
         parts.train->info().channels);
  return make_splits(std::move(parts), options.splits, context);
}

}  // namespace sparsight
