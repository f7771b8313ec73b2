// The files of `sparsight superclass RUN`: RUN/superclasses with confusion.npy, confusion.png, graph.svg,
// superclasses.json, report.txt and map.txt (docs/whole_images.md).
#pragma once

#include <string>

#include "sparsight/analysis/superclasses/found_superclasses.h"

namespace sparsight {

std::string superclass_folder(const std::string& run);  // RUN/superclasses
std::string superclass_map_file(const std::string& folder);

// Removes the files of write_superclasses() in the run at `run`, and no others. Nothing happens where there are none.
void remove_superclasses(const std::string& run);

// Replaces the files in `folder`, which is made where it is missing; other files stay. map.txt is removed first and
// written last: where it is, all others are of the same division. Raises Error if a file cannot be written.
void write_superclasses(const std::string& folder, const FoundSuperclasses& found);

}  // namespace sparsight
