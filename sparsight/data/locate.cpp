#include "sparsight/data/locate.h"

#include <algorithm>
#include <filesystem>

#include "sparsight/core/bytes.h"
#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/data/readers/folder.h"
#include "sparsight/data/readers/image.h"
#include "sparsight/data/register_data.h"
#include "sparsight/data/shards/index_file.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

bool holds(const std::string& folder, const std::string& name) { return path_exists(folder + "/" + name); }

// Levels of folders above the first image: 1 for class/image, 2 for domain/class/image; 0 where there is none.
int image_depth(const std::string& folder, int depth) {
  const std::vector<std::string> names = list_folder(folder);
  if (std::any_of(names.begin(), names.end(), has_image_ending)) return depth;
  if (depth == 4) return 0;
  for (const std::string& name : list_sub_folders(folder))
    if (const int found = image_depth(folder + "/" + name, depth + 1)) return found;
  return 0;
}

std::string kind_of_folder(const std::string& folder) {
  for (const char* inner : {"", "raw/"})
    for (const char* name : {"train-images-idx3-ubyte", "train-images.idx3-ubyte"})
      for (const char* ending : {"", ".gz"})
        if (holds(folder, cat(inner, name, ending))) return "mnist";
  if (holds(folder, "data_batch_1.bin") || holds(folder, "cifar-10-batches-bin")) return "cifar10";
  if (holds(folder, "train.bin") || holds(folder, "cifar-100-binary")) return "cifar100";
  if (holds(folder, "manifest.csv")) return "manifest";
  if (holds(folder, "images.npy")) return "npy";
  if (holds(folder, kIndexFile)) return "webdataset";
  const bool parts = holds(folder, "train");
  return image_depth(folder, 0) >= 2 && !parts ? "domain_folder" : "folder";
}

}  // namespace

LocatedSet locate_set(const std::string& what) {
  const auto& sets = data_sets();
  const std::vector<std::string> names = sets.names();
  const bool variant = what == "fashion-mnist" || what == "kmnist";
  if (variant || std::find(names.begin(), names.end(), what) != names.end()) {
    if (path_exists(what)) log_info("\"", what, "\" is the built-in set; for the folder of that name write ./", what);
    return variant ? LocatedSet{"mnist", {{"variant", what}}} : LocatedSet{what, Json::object()};
  }
  if (!path_exists(what))
    fail("\"", printable(what), "\" is neither a dataset (", join(names), ") nor a file or folder");
  if (std::error_code ignored; !fs::is_directory(what, ignored)) return {"manifest", {{"root", what}}};
  const std::string kind = kind_of_folder(what);
  Json settings{{"root", what}};
  if (kind == "mnist") {
    auto path = fs::path(what).lexically_normal();
    const std::string name = (path.has_filename() ? path : path.parent_path()).filename().native();
    settings["variant"] = name == "fashion-mnist" || name == "kmnist" ? name : name == "mnist" ? "mnist" : "other";
  }
  return {kind, settings};
}

}  // namespace sparsight
