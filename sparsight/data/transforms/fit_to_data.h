// Steps of a pipeline that follow the dataset: sizes of 0, and statistics of colour images for grey ones. Recipes
// (catalogue/recipes.h) use them, so that one recipe fits photographs and images of 32 x 32.
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/data/data_set.h"

namespace sparsight {

// steps: [transforms] train or eval. Where all images have one size, a size of 0 becomes its shorter side. Where sizes
// vary, as those of photographs, it becomes ImageNet's: crops of 224, after a resize of the shorter side to 256. For
// grey images the preset "imagenet" and a fill_color of three levels become the means over the three colours. All else
// stays as it is.
Json fit_to_data(Json steps, const DataInfo& info);

}  // namespace sparsight
