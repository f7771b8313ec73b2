#include "sparsight/data/label_sets.h"

namespace sparsight {

// argmax returns the first of equal values.
at::Tensor first_classes(const at::Tensor& sets) { return sets.to(at::kByte).argmax(1); }

}  // namespace sparsight
