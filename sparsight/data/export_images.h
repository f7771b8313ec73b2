// Writes a dataset as PNG files, in the layouts of the datasets "folder" and "domain_folder".
#pragma once

#include <functional>
#include <string>

#include "sparsight/data/data_set.h"

namespace sparsight {

// Layout "class": folder/train/class/0000123.png, val/..., test/...; "domain": folder/domain/class/train-0000123.png.
// Folders have the names that to_folder_name() gives. The folder must not exist; it appears when all images are
// written. Returns the number of images. `progress` gets (done, total). Raises Error if it cannot be written.
int64_t export_images(const DataSplits& splits, const std::string& folder, const std::string& layout,
                      const std::function<void(int64_t, int64_t)>& progress);

}  // namespace sparsight
