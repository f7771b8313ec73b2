#include "sparsight/data/sets/mnist.h"

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/data/readers/idx.h"
#include "sparsight/data/sets/array_set.h"
#include "sparsight/data/sets/data_root.h"

namespace sparsight {
namespace {

std::vector<std::string> class_names(const std::string& variant) {
  if (variant == "fashion-mnist")
    return {"T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"};
  if (variant == "kmnist") return {"o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"};
  return variant == "mnist" ? number_names(10) : std::vector<std::string>{};
}

}  // namespace

std::string find_idx(const std::string& root, const std::string& part, const std::string& kind) {
  for (const char* folder : {"", "raw/"})
    for (const char* mark : {"-", "."})
      for (const char* ending : {"", ".gz"}) {
        std::string path = cat(root, "/", folder, part, "-", kind.substr(0, 6), mark, kind.substr(7), "-ubyte", ending);
        if (path_exists(path)) return path;
      }
  return "";
}

void MnistOptions::declare(OptionSet& set) {
  set.text("root", &root, "folder of the idx files; empty: the variant's name below SPARSIGHT_DATA or data/");
  set.choice("variant", &variant, {"mnist", "fashion-mnist", "kmnist", "other"},
             "which dataset of the family; determines default folder and class names");
  splits.declare(set);
}

LabelledArray find_mnist_part(const std::string& root, const std::string& part) {
  const std::string stem = part == "test" ? "t10k" : part;
  const std::string images = find_idx(root, stem, "images-idx3"), labels = find_idx(root, stem, "labels-idx1");
  if (images.empty() && labels.empty()) return {};
  if (images.empty() || labels.empty())
    fail(printable(root), ": there is no ", stem, images.empty() ? "-images-idx3" : "-labels-idx1",
         "-ubyte (nor with .gz), only its partner");
  LabelledArray array;
  array.images = read_idx(images);
  if (array.images.dim() != 3)
    fail(printable(images), ": images must have 3 axes (count, rows, columns), got ", array.images.dim());
  array.images = array.images.unsqueeze(1);
  const at::Tensor values = read_idx(labels);
  if (values.dim() != 1) fail(printable(labels), ": labels must have 1 axis, got ", values.dim());
  const uint8_t* at = values.const_data_ptr<uint8_t>();
  array.labels.assign(at, at + values.numel());
  array.part = part;
  array.file = printable(labels);
  return array;
}

LabelledArray read_mnist_part(const std::string& root, const std::string& part) {
  LabelledArray array = find_mnist_part(root, part);
  if (!array.images.defined()) {
    const std::string file = cat(part == "test" ? "t10k" : part, "-images-idx3-ubyte");
    fail(printable(root), " has no ", file, " or ", file, ".gz; see `sparsight data fetch --help`");
  }
  return array;
}

DataSplits make_mnist(const MnistOptions& options, const DataContext& context) {
  const std::string root = data_root(options.root, options.variant == "other" ? "" : options.variant);
  LabelledArray train = read_mnist_part(root, "train"), test = find_mnist_part(root, "test");
  DataInfo info;
  info.name = options.variant == "other" ? "idx" : options.variant;
  info.domains = {info.name};
  info.classes = class_names(options.variant);
  if (info.classes.empty()) {
    int64_t largest = 0;
    for (const auto* part : {&train, &test})
      for (const int64_t label : part->labels) largest = std::max(largest, label);
    info.classes = number_names(largest + 1);
  }
  DataSplits parts;
  if (test.images.defined()) parts.test = std::make_shared<ArraySet>(info, std::move(test));
  parts.train = std::make_shared<ArraySet>(info, std::move(train));
  return make_splits(std::move(parts), options.splits, context);
}

}  // namespace sparsight
