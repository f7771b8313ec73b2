// The choice between a real dataset and its synthetic substitute, which is used if the real one is absent.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sparsight/reproduce/figure.h"

namespace sparsight {

struct DataChoice {
  std::string folder;              // of the real dataset, in the data folder of a run: "mnist"
  std::vector<std::string> files;  // in it; the dataset is present if any of them exists; {}: if the folder does
  std::string substitute;          // "glyphs for MNIST"
  // A closer check of the folder of the real dataset; {}: none.
  std::function<bool(const std::string& folder)> is_complete = {};
};

// Where the real dataset is, or would be.
std::string real_folder(const DataChoice& choice, const FigureRun& run);
bool has_real(const DataChoice& choice, const FigureRun& run);
// The substitute, "" if the run has the real dataset.
std::string substitute_for(const DataChoice& choice, const FigureRun& run);

}  // namespace sparsight
