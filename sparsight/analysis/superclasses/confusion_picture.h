// A confusion matrix as an image.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace sparsight {

// counts: [K,K] real; class_to_superclass: [K]; classes: K names. Rows are true classes and columns predicted ones,
// ordered by super-class, whose blocks are framed. A cell's colour is its share of the row's images, from dark (0) to
// bright (the largest share outside the diagonal); the diagonal is grey. Names are shown where the cells are high
// enough for them. Returns [3,*,*] uint8 of at most about 3000 x 3000 pixels.
at::Tensor confusion_picture(const at::Tensor& counts, const std::vector<int64_t>& class_to_superclass,
                             const std::vector<std::string>& classes);

}  // namespace sparsight
