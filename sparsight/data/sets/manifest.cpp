#include "sparsight/data/sets/manifest.h"

#include <filesystem>

#include "sparsight/core/bytes.h"
#include "sparsight/core/error.h"
#include "sparsight/data/known_superclasses.h"
#include "sparsight/data/readers/manifest.h"
#include "sparsight/data/sets/data_root.h"
#include "sparsight/data/sets/folder.h"
#include "sparsight/data/sets/image_files.h"

namespace sparsight {
void ManifestOptions::declare(OptionSet& set) {
  set.text("root", &root, "a CSV file, or a folder with manifest.csv; relative paths in it start at its folder");
  declare_channels(set, &channels);
  splits.declare(set);
}

DataSplits make_manifest(const ManifestOptions& options, const DataContext& context) {
  std::string path = data_root(options.root, "");
  if (std::filesystem::is_directory(path)) path += "/manifest.csv";
  const Bytes bytes = read_bytes(path, kMaxManifestBytes);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Manifest manifest = parse_manifest(text, printable(path));
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  DataInfo info;
  info.name = printable(std::filesystem::path(path).stem().native());
  info.classes = std::move(manifest.classes);
  info.domains = manifest.domains.empty() ? std::vector<std::string>{info.name} : std::move(manifest.domains);
  info.attributes = std::move(manifest.attributes);
  info.channels = checked_channels(options.channels);
  info.multi_label = manifest.multi_label;
  add_known_superclasses(info);
  std::vector<ImageFile> train, validation, test;
  for (ManifestRow& row : manifest.rows) {
    std::vector<ImageFile>& part = row.split == "test" ? test : row.split == "validation" ? validation : train;
    part.push_back({(folder / row.path).native(), printable(row.path), row.label, row.domain, std::move(row.attributes),
                    std::move(row.labels)});
  }
  const auto set = [&](std::vector<ImageFile>& files) -> DataSetPtr {
    return files.empty() ? nullptr : std::make_shared<ImageFilesSet>(info, std::move(files));
  };
  if (train.empty()) fail(printable(path), ": no row has split \"train\"");
  return make_splits({set(train), set(validation), set(test)}, options.splits, context);
}

}  // namespace sparsight
