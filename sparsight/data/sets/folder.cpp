#include "sparsight/data/sets/folder.h"

#include <algorithm>
#include <filesystem>

#include "sparsight/core/bytes.h"
#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/data/decorators/subset.h"
#include "sparsight/data/known_superclasses.h"
#include "sparsight/data/readers/folder.h"
#include "sparsight/data/sets/data_root.h"
#include "sparsight/data/sets/image_files.h"

namespace sparsight {
namespace {

std::string folder_name(const std::string& root) {
  const auto path = std::filesystem::path(root).lexically_normal();
  const std::string name = (path.has_filename() ? path.filename() : path.parent_path().filename()).native();
  return name.empty() || name[0] == '.' ? "folder" : printable(name);
}

DataSetPtr files_set(const DataInfo& info, FolderScan scan, const std::string& prefix = "") {
  std::vector<ImageFile> files;
  for (FolderImage& image : scan.images)
    files.push_back({std::move(image.path), prefix + printable(image.id), image.label, image.domain, {}});
  return std::make_shared<ImageFilesSet>(info, std::move(files));
}

// A split other than train/: its classes must be among those of train.
DataSetPtr part_set(const DataInfo& info, const std::vector<std::string>& classes, const std::string& root,
                    const std::string& part, IgnoredFiles& ignored) {
  FolderScan scan = scan_class_folders(root + "/" + part);
  check_scan(scan);
  ignored.add(scan.ignored, part + "/");
  std::vector<int64_t> class_to_label;
  for (const std::string& name : scan.classes) {
    const auto found = std::lower_bound(classes.begin(), classes.end(), name);
    if (found == classes.end() || *found != name)
      fail(printable(root + "/" + part + "/" + name),
           " is a class that train/ does not have; the splits must have the same classes");
    class_to_label.push_back(found - classes.begin());
  }
  for (FolderImage& image : scan.images) image.label = class_to_label[image.label];
  return files_set(info, std::move(scan), part + "/");
}

bool has_parts(const std::string& root) {
  const std::vector<std::string> names = list_sub_folders(root);
  return std::find(names.begin(), names.end(), "train") != names.end() && !list_sub_folders(root + "/train").empty();
}

// The usual slip with domain/class/image: as class/image, its domains would become the classes.
void warn_of_domains(const std::string& root, const std::vector<std::string>& classes) {
  const std::vector<std::string> inner = list_sub_folders(root + "/" + classes[0]);
  const auto has_same = [&](const std::string& name) { return list_sub_folders(root + "/" + name) == inner; };
  if (classes.size() < 2 || inner.size() < 2 || !std::all_of(classes.begin(), classes.end(), has_same)) return;
  log_warning("every class folder of ", printable(root), " has the same ", inner.size(), " subfolders (",
              printable(inner[0]), ", ", printable(inner[1]), inner.size() > 2 ? ", ..." : "",
              "): if these are the classes, use --set data.name=domain_folder");
}

}  // namespace

void declare_channels(OptionSet& set, int64_t* channels) {
  set.integer("channels", channels, {1, 3}, "how every image is read: 1 grey, 3 RGB");
}

int64_t checked_channels(int64_t channels) {
  if (channels == 2) fail_usage("data.channels must be 1 or 3, got 2");
  return channels;
}

void FolderOptions::declare(OptionSet& set) {
  set.text("root", &root, "folder with class/image, or with train/class/image, val/... and test/...");
  declare_channels(set, &channels);
  splits.declare(set);
}

void DomainFolderOptions::declare(OptionSet& set) {
  set.text("root", &root, "folder with domain/class/image");
  set.strings("test_domains", &test_domains, "domains kept for testing; the others train and validate");
  declare_channels(set, &channels);
  splits.declare(set);
}

DataSplits make_folder(const FolderOptions& options, const DataContext& context) {
  const std::string root = data_root(options.root, "");
  const bool parted = has_parts(root);
  const std::string class_root = parted ? root + "/train" : root;
  FolderScan scan = scan_class_folders(class_root);
  check_scan(scan);
  warn_of_domains(class_root, scan.classes);
  DataInfo info;
  info.name = folder_name(root);
  info.classes = printable_names(scan.classes);
  info.domains = {info.name};
  info.channels = checked_channels(options.channels);
  add_known_superclasses(info);
  const std::vector<std::string> classes = scan.classes;
  IgnoredFiles ignored;
  ignored.add(scan.ignored, parted ? "train/" : "");
  DataSplits parts;
  parts.train = files_set(info, std::move(scan), parted ? "train/" : "");
  if (parted) {
    for (const std::string& name : list_sub_folders(root)) {
      if (name == "val" || name == "valid" || name == "validation")
        parts.validation = part_set(info, classes, root, name, ignored);
      if (name == "test") parts.test = part_set(info, classes, root, name, ignored);
    }
  }
  warn_of_ignored(ignored);
  return make_splits(std::move(parts), options.splits, context);
}

DataSetPtr all_of_domain_folder(const DomainFolderOptions& options) {
  const std::string root = data_root(options.root, "");
  FolderScan scan = scan_domain_folders(root);
  check_scan(scan);
  DataInfo info;
  info.name = folder_name(root);
  info.classes = printable_names(scan.classes);
  info.domains = printable_names(scan.domains);
  info.channels = checked_channels(options.channels);
  add_known_superclasses(info);
  warn_of_ignored(scan.ignored);
  return files_set(info, std::move(scan));
}

void warn_of_uneven_domains(const DataSet& set) {
  static constexpr size_t kNamed = 3;
  const auto names = [](std::vector<std::string> all) {
    const bool more = all.size() > kNamed;
    all.resize(std::min(all.size(), kNamed));
    return join(all) + (more ? ", ..." : "");
  };
  const DataInfo& info = set.info();
  std::vector<std::vector<bool>> has(info.classes.size(), std::vector<bool>(info.domains.size()));
  for (int64_t i = 0; i < set.size(); ++i) has.at(set.label(i)).at(set.domain(i)) = true;
  std::vector<std::string> uneven;
  for (size_t c = 0; c < has.size(); ++c) {
    std::vector<std::string> with, without;
    for (size_t d = 0; d < info.domains.size(); ++d) (has[c][d] ? with : without).push_back(info.domains[d]);
    if (without.empty()) continue;
    const bool only = with.size() == 1 && without.size() > 1;
    uneven.push_back(cat(info.classes[c], only ? " (only in " : " (not in ", names(only ? with : without), ")"));
  }
  if (uneven.empty()) return;
  log_warning(info.name, ": ", uneven.size(), uneven.size() == 1 ? " class is" : " classes are",
              " missing in some domains: ", names(uneven), "; give all domains the same class folders");
}

DataSplits make_domain_folder(const DomainFolderOptions& options, const DataContext& context) {
  const DataSetPtr all = all_of_domain_folder(options);
  warn_of_uneven_domains(*all);
  const DataInfo& info = all->info();
  std::vector<bool> held_out(info.domains.size());
  for (const std::string& name : options.test_domains) {
    const auto found = std::find(info.domains.begin(), info.domains.end(), name);
    if (found == info.domains.end())
      fail_usage("data.test_domains: ", info.name, " has no domain \"", printable(name), "\"",
                 suggestion(name, info.domains));
    held_out[found - info.domains.begin()] = true;
  }
  if (std::find(held_out.begin(), held_out.end(), false) == held_out.end())
    fail_usage("data.test_domains names every domain of ", info.name, "; leave at least one to train on");
  std::vector<int64_t> train, test;
  for (int64_t i = 0; i < all->size(); ++i) (held_out[all->domain(i)] ? test : train).push_back(i);
  DataSplits parts;
  parts.train = std::make_shared<SubsetDataSet>(all, std::move(train));
  if (!test.empty()) parts.test = std::make_shared<SubsetDataSet>(all, std::move(test));
  return make_splits(std::move(parts), options.splits, context);
}

}  // namespace sparsight
