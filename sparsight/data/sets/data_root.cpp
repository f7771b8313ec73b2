#include "sparsight/data/sets/data_root.h"

#include <cstdlib>

#include "sparsight/core/bytes.h"
#include "sparsight/core/error.h"
#include "sparsight/data/places.h"

namespace sparsight {
namespace {

// "run `sparsight data fetch mnist`, or ", "" for a set without a place of its own.
std::string how_to_get(const std::string& name) {
  for (const DataPlace& place : data_places())
    if (place.name == name) return place.get + ", or ";
  return "";
}

}  // namespace

std::string data_home() {
  const char* home = std::getenv("SPARSIGHT_DATA");
  return home && *home ? home : "data";
}

std::string data_root(const std::string& root, const std::string& name, const std::string& obtain) {
  if (root.empty() && name.empty()) fail_usage("this dataset needs a path: set data.root to its folder or file");
  std::string below = data_home() + "/" + (root.empty() ? name : root);
  if (!root.empty() && path_exists(root)) return root;
  if ((root.empty() || root[0] != '/') && path_exists(below)) return below;
  if (!root.empty())
    fail("there is no file or folder \"", printable(root), "\"",
         root[0] == '/' ? "" : cat(" here, nor \"", printable(below), "\""),
         "; set data.root to the data's folder (--set data.root=PATH)");
  fail("the files of ", name, " are missing: there is no ", printable(below), "; ",
       obtain.empty() ? how_to_get(name) : "obtain them from " + obtain + ", then ",
       "set data.root, or SPARSIGHT_DATA to the folder that holds ", name, "/");
}

}  // namespace sparsight
