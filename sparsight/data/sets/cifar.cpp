#include "sparsight/data/sets/cifar.h"

#include "sparsight/core/error.h"
#include "sparsight/data/decorators/concat.h"
#include "sparsight/data/known_superclasses.h"
#include "sparsight/data/readers/cifar.h"
#include "sparsight/data/sets/array_set.h"
#include "sparsight/data/sets/cifar_names.h"
#include "sparsight/data/sets/data_root.h"

namespace sparsight {
namespace {

// `root`, or the folder in it that the archive creates.
std::string files_folder(const std::string& root, const std::string& inner, const std::string& first) {
  for (const std::string& folder : {root, root + "/" + inner})
    if (path_exists(folder + "/" + first)) return folder;
  fail(printable(root), " has no ", first,
       " (the binary version is read, not the Python or Matlab one); run `sparsight data fetch`");
}

// The names in `file`, or the built-in ones if there is no such file.
std::vector<std::string> names(const std::string& file, const std::vector<std::string>& built_in) {
  const std::vector<std::string> read = read_names(file);
  if (!read.empty() && read.size() != built_in.size())
    fail(printable(file), " has ", read.size(), " names; there are ", built_in.size(), " classes");
  return read.empty() ? built_in : read;
}

DataSetPtr array_set(const DataInfo& info, CifarRecords records, size_t label, const std::string& path,
                     const std::string& part) {
  const std::vector<uint8_t>& values = records.labels[label];
  LabelledArray array{std::move(records.images), std::vector<int64_t>(values.begin(), values.end()), part,
                      printable(path)};
  return std::make_shared<ArraySet>(info, std::move(array));
}

// A cheap check that detects damaged files and those that are not CIFAR-100.
void check_coarse_labels(const CifarRecords& records, const std::string& path) {
  for (size_t i = 0; i < records.labels[0].size(); ++i) {
    const int coarse = records.labels[0][i], fine = records.labels[1][i];
    if (fine < 100 && cifar100_fine_to_coarse()[fine] != coarse)
      fail(printable(path), ": image ", i, " has coarse label ", coarse, " and fine label ", fine,
           ", which belongs to ", cifar100_fine_to_coarse()[fine], "; the file is damaged or not CIFAR-100");
  }
}

}  // namespace

void Cifar10Options::declare(OptionSet& set) {
  set.text("root", &root, "folder of the .bin files; empty: cifar10 below SPARSIGHT_DATA or data/");
  splits.declare(set);
}

void Cifar100Options::declare(OptionSet& set) {
  set.text("root", &root, "folder of the .bin files; empty: cifar100 below SPARSIGHT_DATA or data/");
  set.choice("labels", &labels, {"fine", "coarse"}, "the 100 fine classes, or the 20 coarse ones");
  splits.declare(set);
}

DataSplits make_cifar10(const Cifar10Options& options, const DataContext& context) {
  const std::string folder =
      files_folder(data_root(options.root, "cifar10"), "cifar-10-batches-bin", "data_batch_1.bin");
  DataInfo info;
  info.name = "cifar10";
  info.domains = {info.name};
  info.classes = names(folder + "/batches.meta.txt", cifar10_names());
  add_known_superclasses(info);
  const auto read = [&](const std::string& name) {
    const std::string path = folder + "/" + name + ".bin";
    return array_set(info, read_cifar(path, 1), 0, path, name);
  };
  std::vector<DataSetPtr> batches;
  for (int i = 1; i <= 5; ++i)
    if (const std::string name = cat("data_batch_", i); i == 1 || path_exists(folder + "/" + name + ".bin"))
      batches.push_back(read(name));
  DataSplits parts;
  parts.train = std::make_shared<ConcatDataSet>(std::move(batches));
  if (path_exists(folder + "/test_batch.bin")) parts.test = read("test_batch");
  return make_splits(std::move(parts), options.splits, context);
}

DataSplits make_cifar100(const Cifar100Options& options, const DataContext& context) {
  const std::string folder = files_folder(data_root(options.root, "cifar100"), "cifar-100-binary", "train.bin");
  const bool fine = options.labels == "fine";
  DataInfo info;
  info.name = "cifar100";
  info.domains = {info.name};
  info.super_classes = names(folder + "/coarse_label_names.txt", cifar100_coarse_names());
  info.super_class_of = cifar100_fine_to_coarse();
  info.classes = names(folder + "/fine_label_names.txt", cifar100_fine_names());
  if (!fine) {
    info.classes = std::move(info.super_classes);
    info.super_classes.clear();
    info.super_class_of.clear();
  }
  const auto read = [&](const std::string& name) {
    const std::string path = folder + "/" + name + ".bin";
    CifarRecords records = read_cifar(path, 2);
    check_coarse_labels(records, path);
    return array_set(info, std::move(records), fine ? 1 : 0, path, name);
  };
  DataSplits parts;
  parts.train = read("train");
  if (path_exists(folder + "/test.bin")) parts.test = read("test");
  return make_splits(std::move(parts), options.splits, context);
}

}  // namespace sparsight
