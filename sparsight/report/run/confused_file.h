// confused.json of a run: the images behind the confusion matrix of its final evaluation, with small pictures of them,
// which the report opens.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sparsight/core/options.h"
#include "sparsight/data/data_set.h"
#include "sparsight/eval/confused_images.h"

namespace sparsight {

inline constexpr size_t kMaxConfusedPictureBytes = size_t{1} << 21;  // of all pictures, as text in base 64
inline constexpr size_t kMaxConfusedCells = 1000;                    // all of up to 32 classes
inline constexpr size_t kMaxConfusedIdBytes = 200;                   // of longer names the end is kept

// Writes the file (RunFolder::confused()) with a checksum: {"format", "version", "data", "split", "step", "weights",
// "images", "cells": [{"true", "predicted", "images", "confused": [{"index", "probability", "id", "picture"}]}]}. Has
// every cell of up to kMaxConfusionClasses classes, and of more classes those that the report lists. The pictures of
// the worst images of all cells come first, then those of the second worst, up to kMaxConfusedPictureBytes; an image
// that cannot be read has none.
// data: the split that was evaluated; eval: its "eval" record.
void write_confused(const std::string& file, const ConfusedImages& images, const DataSet& data, const Json& eval);

// The cells of the run folder `run`, as above but checked: within the limits, and every picture a PNG or JPEG file in
// base 64. Null without the file. What is damaged, and a file that is of another evaluation than `eval`, becomes a
// warning.
Json read_confused(const std::string& run, const Json& eval, std::vector<std::string>& warnings);

}  // namespace sparsight
