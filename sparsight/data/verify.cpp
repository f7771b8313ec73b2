#include "sparsight/data/verify.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/data/hash.h"
#include "sparsight/data/look_at_all.h"
#include "sparsight/data/readers/folder.h"
#include "sparsight/data/readers/image.h"
#include "sparsight/data/register_data.h"
#include "sparsight/data/sets/data_root.h"
#include "sparsight/data/shards/shard_store.h"

namespace sparsight {
namespace {

using VerifyProgress = std::function<void(int64_t, int64_t)>;

void count_all(int64_t count, const std::function<void(int64_t)>& look, const VerifyProgress& progress,
               Verification& result) {
  const Looks looks = look_at_all(count, look, progress);
  result.interrupted = result.interrupted || looks.done < count;
  result.images += looks.done - std::ssize(looks.problems);
  result.looked_at += looks.done;
  for (const auto& [index, problem] : looks.problems) result.problems.push_back(problem);
}

// Lines of sha256sum(1): a digest, two spaces (or a space and a star) and a name.
void verify_checksums(const std::string& folder, Verification& result) {
  const std::string list = folder + "/SHA256SUMS";
  std::error_code ignored;
  if (!std::filesystem::exists(list, ignored)) return;
  const Bytes bytes = read_bytes(list, kMaxListBytes);
  std::istringstream text(std::string(bytes.begin(), bytes.end()));
  for (std::string line; std::getline(text, line);) {
    if (line.empty()) continue;
    if (interrupted()) {
      result.interrupted = true;
      return;
    }
    if (line.size() < 67 || line.find('/') != std::string::npos) {
      result.problems.push_back(
          cat(printable(list), ": this line is not the checksum of a file in the folder: ", printable(line)));
      continue;
    }
    const std::string path = folder + "/" + line.substr(66);
    try {
      const std::string digest = hash_file(path);
      if (digest == line.substr(0, 64)) {
        ++result.files;
      } else {
        result.problems.push_back(cat(printable(path), " has sha256 ", digest, ", SHA256SUMS says ",
                                      printable(line.substr(0, 64)), "; get it again"));
      }
    } catch (const Error& error) {
      result.problems.push_back(error.what());
    }
  }
}

// Returns the files that are no images.
IgnoredFiles verify_folders(const std::string& name, const std::string& root, const VerifyProgress& progress,
                            Verification& result) {
  IgnoredFiles ignored;
  const auto scan_and_look = [&](const FolderScan& scan, const std::string& part = "") {
    ignored.add(scan.ignored, part);
    result.problems.insert(result.problems.end(), scan.problems.begin(), scan.problems.end());
    count_all(
        static_cast<int64_t>(scan.images.size()), [&](int64_t i) { read_image(scan.images[i].path); }, progress,
        result);
  };
  const bool by_domain = name == "domain_folder";
  const std::vector<std::string> names = by_domain ? std::vector<std::string>() : list_sub_folders(root);
  const bool parted =
      std::find(names.begin(), names.end(), "train") != names.end() && !list_sub_folders(root + "/train").empty();
  if (!parted) scan_and_look(by_domain ? scan_domain_folders(root) : scan_class_folders(root));
  for (const std::string& part : parted ? names : std::vector<std::string>())
    scan_and_look(scan_class_folders(root + "/" + part), part + "/");
  return ignored;
}

}  // namespace

Verification verify_set(const LocatedSet& set, const std::function<void(int64_t, int64_t)>& progress) {
  Verification result;
  const std::string root = set.settings.value("root", "");
  try {
    if (set.name == "folder" || set.name == "domain_folder") {
      const std::string folder = data_root(root, "");
      verify_checksums(folder, result);
      if (result.interrupted) return result;
      const IgnoredFiles ignored = verify_folders(set.name, folder, progress, result);
      // Even if every file is valid, the dataset may be wrong: classes of its splits may differ, for example. That
      // warns of ignored files too.
      if (result.interrupted) return result;
      if (result.problems.empty())
        data_sets().make(set.name, set.settings, "data", DataContext{});
      else
        warn_of_ignored(ignored);
      return result;
    }
    std::error_code ignored;
    std::string home = set.settings.value("variant", set.name);
    if (set.name == "manifest" || set.name == "npy" || set.name == "webdataset" || home == "other") home = "";
    if (set.name != "glyphs" && !is_url(root))
      if (const std::string folder = data_root(root, home); std::filesystem::is_directory(folder, ignored))
        verify_checksums(folder, result);
    if (result.interrupted) return result;
    const DataSplits splits = data_sets().make(set.name, set.settings, "data", DataContext{});
    for (const DataSetPtr& part : distinct_parts({splits.train, splits.validation, splits.test}))
      count_all(
          part->size(), [&](int64_t i) { part->get(i); }, progress, result);
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    if (interrupted())  // the error says no more than that
      result.interrupted = true;
    else
      result.problems.push_back(error.what());
  }
  return result;
}

}  // namespace sparsight
