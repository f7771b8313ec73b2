// Where the files of a dataset are.
#pragma once

#include <string>

namespace sparsight {

// The folder that holds datasets: the environment variable SPARSIGHT_DATA, else "data".
std::string data_home();

// The folder or file of a dataset. `root` is its `root` setting: a path, also below data_home(); where it is empty,
// `name` below data_home() is taken. Raises Error, saying what to do, where there is nothing. `name` "": the set has no
// home of its own and needs a root.
std::string data_root(const std::string& root, const std::string& name);

}  // namespace sparsight
