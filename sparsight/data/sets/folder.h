// Datasets of image files in folders.
#pragma once

#include "sparsight/data/sets/splits.h"

namespace sparsight {

// class/image. If `root` has a subfolder train with class folders in it, its splits are train, val (or validation,
// valid) and test.
struct FolderOptions {
  std::string root;
  int64_t channels = 3;
  SplitOptions splits;
  void declare(OptionSet& set);
};

// domain/class/image. The test split is every image of `test_domains`; training and validation share the other domains.
struct DomainFolderOptions {
  std::string root;
  std::vector<std::string> test_domains;
  int64_t channels = 3;
  SplitOptions splits;
  void declare(OptionSet& set);
};

DataSplits make_folder(const FolderOptions& options, const DataContext& context);
// Every image of the folder, whatever `test_domains` says.
DataSetPtr all_of_domain_folder(const DomainFolderOptions& options);

// One warning line if there are classes that some domains lack.
void warn_of_uneven_domains(const DataSet& set);
DataSplits make_domain_folder(const DomainFolderOptions& options, const DataContext& context);

// How every image is read: 1 for grey, 3 for RGB.
void declare_channels(OptionSet& set, int64_t* channels);
int64_t checked_channels(int64_t channels);

}  // namespace sparsight
