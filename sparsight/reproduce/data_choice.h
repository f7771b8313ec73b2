// The choice between a real dataset and the synthetic one that takes its place where the real one is absent.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sparsight/reproduce/figure.h"

namespace sparsight {

struct DataChoice {
  std::string folder;              // of the real set, below the folder of a run's data: "mnist"
  std::vector<std::string> files;  // in it, any of which tells that it is there; {}: the folder itself does
  std::string substitute;          // "glyphs for MNIST"
  // Looks closer than `files` can, at the folder of the real set; {}: no need.
  std::function<bool(const std::string& folder)> is_complete = {};
};

// Where the real set is, or would be.
std::string real_folder(const DataChoice& choice, const FigureRun& run);
bool has_real(const DataChoice& choice, const FigureRun& run);
// The substitute, "" where the run has the real set.
std::string substitute_for(const DataChoice& choice, const FigureRun& run);

}  // namespace sparsight
