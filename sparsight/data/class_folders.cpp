#include "sparsight/data/class_folders.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/atomic_file.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFolderName = 255;  // bytes, on the usual disks
constexpr size_t kMaxShown = 60;

std::string short_name(const std::string& name) {
  return name.size() <= kMaxShown ? printable(name) : printable(name.substr(0, kMaxShown)) + "...";
}

// The names are distinct, and short enough for folders.
void check_names(const std::vector<std::string>& names, const std::string& kinds) {
  std::map<std::string, size_t> seen;
  for (size_t i = 0; i < names.size(); ++i) {
    if (const auto [other, fresh] = seen.emplace(names[i], i); !fresh)
      fail("the ", kinds, " ", other->second, " and ", i, " are both named \"", short_name(names[i]),
           "\" and would share a folder; rename one of them");
    if (const size_t bytes = to_folder_name(names[i]).size(); bytes > kMaxFolderName)
      fail("the name \"", short_name(names[i]), "\" is one of the ", kinds, " and takes ", bytes,
           " bytes; the name of a folder has at most ", kMaxFolderName, ", shorten it");
  }
}

}  // namespace

std::string to_folder_name(const std::string& name) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  if (name.empty()) return "%";
  std::string folder;
  for (const char c : name) {
    const bool hides = c == '.' && folder.empty();
    if (c == '/' || c == '%' || c == '\0' || hides)
      folder += {'%', kDigits[static_cast<unsigned char>(c) >> 4], kDigits[c & 15]};
    else
      folder += c;
  }
  return folder;
}

ClassFolders::ClassFolders(std::string root, const DataInfo& info, bool by_domain)
    : root_(std::move(root)), classes_(info.classes), domains_(info.domains), by_domain_(by_domain) {
  check_names(classes_, "classes");
  if (by_domain_) check_names(domains_, "domains");
}

const std::vector<std::string>& ClassFolders::names(const std::string& kind) const {
  return kind == "class" ? classes_ : domains_;
}

std::string ClassFolders::make(const std::string& parent, const std::string& kind, int64_t index) {
  const std::string& name = names(kind).at(static_cast<size_t>(index));
  std::string folder = parent + "/" + to_folder_name(name);
  if (mkdir(folder.c_str(), 0777) != 0) {
    const int reason = errno;
    std::error_code ignored;
    for (const auto& [made, other] : folder_to_name_)
      if (reason == EEXIST && fs::equivalent(made, folder, ignored))
        fail("the ", kind, " names \"", short_name(other), "\" and \"", short_name(name),
             "\" are the same folder on this disk; rename one of them or choose a folder on another disk");
    fail_system("make the folder", folder, reason);
  }
  folder_to_name_[folder] = name;
  return folder;
}

const std::string& ClassFolders::of(int64_t domain, int64_t label) {
  std::string& folder = folders_[{by_domain_ ? domain : 0, label}];
  if (!folder.empty()) return folder;
  std::string parent = root_;
  if (by_domain_) {
    std::string& above = domain_folders_[domain];
    if (above.empty()) above = make(root_, "domain", domain);
    parent = above;
  }
  return folder = make(parent, "class", label);
}

}  // namespace sparsight
