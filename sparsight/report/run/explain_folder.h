// The files of `sparsight explain`: a folder with explain.json (docs/explain.md) and the PNG files that it names. A run
// has one of its own dataset, RUN/explain, and one of images that were given, RUN/explain_images; its report includes
// both.
#pragma once

#include <string>

#include "sparsight/analysis/explanation.h"

namespace sparsight {

std::string explain_folder(const std::string& run);         // of a split of the run's dataset
std::string explain_images_folder(const std::string& run);  // of given images

// Removes both explanations of the run at `run`, and no other files. Nothing happens where there are none.
void remove_explanations(const std::string& run);

// Replaces the explanation in `folder`, which is made where it is missing; other files stay. explain.json is written
// last, so that it never names a missing file. Returns its contents. Raises Error if a file cannot be written.
Json write_explanation(const std::string& folder, const Explanation& explanation);

}  // namespace sparsight
