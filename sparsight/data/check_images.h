// Finds images that a training could not read before it begins.
#pragma once

#include <vector>

#include "sparsight/data/data_set.h"

namespace sparsight {

// Calls DataSet::check for every image of the splits, null ones left out, and raises Error that names the first bad
// image and says how many there are. Raises Error if interrupted.
void check_images(const DataSplits& splits);

}  // namespace sparsight
