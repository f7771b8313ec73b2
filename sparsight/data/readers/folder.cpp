#include "sparsight/data/readers/folder.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "sparsight/core/bytes.h"
#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/data/readers/image.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 16;

// Hidden, or the folder that macOS adds to archives.
bool is_left_out(const std::string& name) { return name.starts_with(".") || name == "__MACOSX"; }

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// Appends the images below `path`. Links to folders are followed only for classes and domains, so that there are no
// cycles.
void scan_images(const std::string& path, const std::string& id, int depth, FolderImage image, FolderScan& scan) {
  for (const std::string& name : list_folder(path)) {
    image.path = path + "/" + name;
    image.id = id + "/" + name;
    std::error_code ignored;
    if (is_folder(image.path)) {
      if (depth < kMaxDepth && !fs::is_symlink(image.path, ignored))
        scan_images(image.path, image.id, depth + 1, image, scan);
    } else if (has_image_ending(name)) {
      scan.images.push_back(image);
    } else {
      scan.ignored.add(image.id);
    }
  }
}

void scan_class(const std::string& path, const std::string& id, FolderImage image, FolderScan& scan) {
  FolderScan inside;
  scan_images(path, id, 0, std::move(image), inside);
  const IgnoredFiles& others = inside.ignored;
  if (inside.images.empty())
    scan.problems.push_back(cat("the class folder ", printable(path), " has no images (", image_kinds(), ")",
                                others.count == 0
                                    ? "; fill or remove it"
                                    : cat(", but ", others.count, " other ", others.count == 1 ? "file" : "files", ": ",
                                          others.names(), "; convert them or remove the folder")));
  scan.images.insert(scan.images.end(), std::make_move_iterator(inside.images.begin()),
                     std::make_move_iterator(inside.images.end()));
  scan.ignored.add(others);
}

int64_t find_index(const std::vector<std::string>& sorted, const std::string& name) {
  return std::lower_bound(sorted.begin(), sorted.end(), name) - sorted.begin();
}

}  // namespace

void IgnoredFiles::add(const std::string& name) {
  if (++count <= static_cast<int64_t>(kNamed)) first.push_back(printable(name));
}

void IgnoredFiles::add(const IgnoredFiles& more, const std::string& prefix) {
  count += more.count;
  for (const std::string& name : more.first)
    if (first.size() < kNamed) first.push_back(prefix + name);
}

std::string IgnoredFiles::names() const {
  return join(first) + (count > static_cast<int64_t>(first.size()) ? ", ..." : "");
}

void warn_of_ignored(const IgnoredFiles& files) {
  if (files.count == 0) return;
  const bool one = files.count == 1;
  log_warning(files.count, one ? " file is not " : " files are not ", image_kinds(),
              one ? " and was ignored: " : " and were ignored: ", files.names(),
              one ? "; convert it" : "; convert them");
}

std::vector<std::string> list_folder(const std::string& path) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
    if (std::string name = entry->path().filename().native(); !is_left_out(name)) names.push_back(std::move(name));
  if (error) fail("cannot list the folder ", printable(path), ": ", error.message());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> list_sub_folders(const std::string& path) {
  std::vector<std::string> names;
  for (std::string& name : list_folder(path))
    if (is_folder(path + "/" + name)) names.push_back(std::move(name));
  return names;
}

std::vector<std::string> images_below(const std::string& folder, IgnoredFiles& ignored, std::error_code& error) {
  std::vector<std::string> found, others;
  fs::recursive_directory_iterator entry(folder, error);
  for (const fs::recursive_directory_iterator end; !error && entry != end; entry.increment(error)) {
    const std::string path = entry->path().native(), name = entry->path().filename().native();
    std::error_code unknown;
    if (!entry->is_regular_file(unknown)) continue;
    if (has_image_ending(name))
      found.push_back(path);
    else if (name[0] != '.')
      others.push_back(path);
  }
  std::sort(found.begin(), found.end());
  std::sort(others.begin(), others.end());
  for (const std::string& path : others) ignored.add(path);
  return found;
}

FolderScan scan_class_folders(const std::string& root) {
  FolderScan scan;
  scan.classes = list_sub_folders(root);
  if (scan.classes.empty())
    scan.problems.push_back(cat(printable(root), " has no class folders; images must be in class/image"));
  for (size_t i = 0; i < scan.classes.size(); ++i)
    scan_class(root + "/" + scan.classes[i], scan.classes[i], {"", "", static_cast<int64_t>(i), 0}, scan);
  return scan;
}

FolderScan scan_domain_folders(const std::string& root) {
  FolderScan scan;
  scan.domains = list_sub_folders(root);
  if (scan.domains.empty())
    scan.problems.push_back(cat(printable(root), " has no domain folders; images must be in domain/class/image"));
  std::vector<std::vector<std::string>> classes;
  for (const std::string& domain : scan.domains) {
    classes.push_back(list_sub_folders(root + "/" + domain));
    if (classes.back().empty())
      scan.problems.push_back(
          cat("the domain folder ", printable(root + "/" + domain), " has no class folders; fill or remove it"));
    scan.classes.insert(scan.classes.end(), classes.back().begin(), classes.back().end());
  }
  std::sort(scan.classes.begin(), scan.classes.end());
  scan.classes.erase(std::unique(scan.classes.begin(), scan.classes.end()), scan.classes.end());
  for (size_t d = 0; d < scan.domains.size(); ++d)
    for (const std::string& name : classes[d]) {
      const std::string id = scan.domains[d] + "/" + name;
      scan_class(root + "/" + id, id, {"", "", find_index(scan.classes, name), static_cast<int64_t>(d)}, scan);
    }
  return scan;
}

void check_scan(const FolderScan& scan) {
  if (scan.problems.empty()) return;
  const size_t more = scan.problems.size() - 1;
  fail(scan.problems.front(), more == 0 ? "" : cat(" (and ", more, " more; see `sparsight data verify`)"));
}

}  // namespace sparsight
