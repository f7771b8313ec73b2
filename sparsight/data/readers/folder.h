// Folders of images: class/image and domain/class/image. Classes and domains are the folders' names in byte order.
// Hidden files and files that are not .jpg, .jpeg or .png are skipped; below a class, folders may be nested.
#pragma once

#include <string>
#include <vector>

namespace sparsight {

struct FolderImage {
  std::string path;  // root/[domain/]class/image
  std::string id;    // the same without root
  int64_t label = 0, domain = 0;
};

struct FolderScan {
  std::vector<std::string> classes, domains;  // the names on disk, any bytes; no domains for class/image
  std::vector<FolderImage> images;            // by domain, class, name
  std::vector<std::string> problems;          // one line each, such as an empty class folder
  int64_t passed_over = 0;                    // visible files that are not images
};

// Names in `path`, in byte order, without hidden ones. Raises Error if it cannot be listed.
std::vector<std::string> list_folder(const std::string& path);
std::vector<std::string> list_sub_folders(const std::string& path);

FolderScan scan_class_folders(const std::string& root);
FolderScan scan_domain_folders(const std::string& root);

// Raises Error with the first problem and the number of the others, if there is one.
void check_scan(const FolderScan& scan);

}  // namespace sparsight
