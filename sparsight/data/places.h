// Where the files of the real datasets go: the one list behind `sparsight data where`, and what the figures of papers
// look for.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace sparsight {

// A file that a set is read from.
struct PlacedFile {
  std::string name;  // as published, unpacked: "train-images-idx3-ubyte" for raw/train-images.idx3-ubyte.gz
  std::string path;
};

// Below the folder of all datasets, a set has a folder of its own.
struct DataPlace {
  std::string name;
  std::string title;
  std::string files;  // "data_batch_1.bin to 5 and test_batch.bin"
  std::string get;    // how to get them
  // placed_files() without the order.
  std::function<std::vector<PlacedFile>(const DataPlace& place, const std::string& folder)> find_files;
  std::vector<std::string> folders = {};  // names of its folder, the usual one first; {}: `name`
  // How the files differ from the published ones, where no checksums are known but counts and sizes; "" if they do not.
  std::function<std::string(const std::vector<PlacedFile>& files)> difference = {};
};

const std::vector<DataPlace>& data_places();

// Raises UsageError naming the nearest one.
const DataPlace& find_data_place(const std::string& name);

// The folder of a set below `home`: the first of its names that is there, else the usual one.
std::string place_folder(const DataPlace& place, const std::string& home);

// The files of a set in `folder`, in any spelling that its reader knows, in order of name. Raises Error with the first
// one that is missing, the folder and how to get it.
std::vector<PlacedFile> placed_files(const DataPlace& place, const std::string& folder);

}  // namespace sparsight
