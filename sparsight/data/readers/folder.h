// Folders of images: class/image and domain/class/image. Classes and domains are the folders' names in byte order.
// Hidden files are ignored, and so are files that are not .jpg, .jpeg or .png, which are counted. Below a class,
// folders may be nested.
#pragma once

#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

namespace sparsight {

struct FolderImage {
  std::string path;  // root/[domain/]class/image
  std::string id;    // the same without root
  int64_t label = 0, domain = 0;
};

// Visible files beside images that do not end in .jpg, .jpeg or .png.
struct IgnoredFiles {
  static constexpr size_t kNamed = 3;

  int64_t count = 0;
  std::vector<std::string> first;  // at most kNamed, printable

  void add(const std::string& name);
  void add(const IgnoredFiles& more, const std::string& prefix = "");
  std::string names() const;  // "cat/a.webp, cat/b.webp, cat/c.webp, ..."
};

// One warning line where there are any.
void warn_of_ignored(const IgnoredFiles& files);

struct FolderScan {
  std::vector<std::string> classes, domains;  // the names on disk, any bytes; no domains for class/image
  std::vector<FolderImage> images;            // by domain, class, name
  std::vector<std::string> problems;          // one line each, such as an empty class folder
  IgnoredFiles ignored;                       // below the classes, without root
};

// Names in `path`, in byte order, without hidden ones and __MACOSX. Raises Error if it cannot be listed.
std::vector<std::string> list_folder(const std::string& path);
std::vector<std::string> list_sub_folders(const std::string& path);

// The images in `folder` and below it, in order of name, hidden ones too; links to folders are not followed, so that
// there are no loops. `error` says why it cannot be listed.
std::vector<std::string> images_below(const std::string& folder, IgnoredFiles& ignored, std::error_code& error);

FolderScan scan_class_folders(const std::string& root);
FolderScan scan_domain_folders(const std::string& root);

// Raises Error with the first problem and the number of the others, if there is one.
void check_scan(const FolderScan& scan);

}  // namespace sparsight
