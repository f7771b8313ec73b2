// Folders named after classes and domains, where images are written: no two names share one.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sparsight/data/data_set.h"

namespace sparsight {

// A class or domain name as the name of one visible folder; different names give different ones. "/", "%", the byte 0
// and a "." at the beginning become %2F, %25, %00 and %2E; the empty name becomes "%".
std::string to_folder_name(const std::string& name);

class ClassFolders {
 public:
  // root/class, or root/domain/class. Raises Error where two classes or domains have the same name, and where a name is
  // too long for a folder.
  ClassFolders(std::string root, const DataInfo& info, bool by_domain);

  // The folder of the images of this domain and class, made when it is first asked for. Raises Error where the disk
  // takes its name for that of another class, as disks do that do not tell A from a.
  const std::string& of(int64_t domain, int64_t label);

 private:
  std::string make(const std::string& parent, const std::string& kind, int64_t index);
  const std::vector<std::string>& names(const std::string& kind) const;

  std::string root_;
  std::vector<std::string> classes_, domains_;
  bool by_domain_;
  std::map<int64_t, std::string> domain_folders_;
  std::map<std::pair<int64_t, int64_t>, std::string> folders_;
  std::map<std::string, std::string> folder_to_name_;  // the class or domain of each folder that was made
};

}  // namespace sparsight
