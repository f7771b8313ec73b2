// The images on which the answers of two forms of a model are compared.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sparsight/data/data_set.h"
#include "sparsight/data/loader.h"
#include "sparsight/infer/loaded_model.h"

namespace sparsight {

struct CalibrationSplit {
  std::string split;
  DataSetPtr data;  // null: no images
};

// The first of the splits that has images. images: how many of them, spread over the whole split, in its order; 0: all.
// Raises Error for other classes than the model's.
CalibrationSplit calibration_split(const LoadedModel& loaded, const std::vector<std::string>& splits, int64_t images);

// Its images in order, as the model takes them.
std::unique_ptr<Loader> calibration_loader(const LoadedModel& loaded, const CalibrationSplit& on);

}  // namespace sparsight
