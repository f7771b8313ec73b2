// Finds the files of a dataset.
#pragma once

#include <string>

namespace sparsight {

// The folder that holds datasets: the environment variable SPARSIGHT_DATA, else "data".
std::string data_home();

// The folder or file of a dataset. `root` is its `root` setting: a path, which may be relative to data_home(); if it is
// empty, `name` in data_home() is used. Raises Error if nothing is there. `name` "": the dataset has no default folder
// and needs a root. obtain: where its authors publish it, for the error; "": not said.
std::string data_root(const std::string& root, const std::string& name, const std::string& obtain = "");

}  // namespace sparsight
