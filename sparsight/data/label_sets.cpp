#include "sparsight/data/label_sets.h"

namespace sparsight {

// Of equal values argmax returns the first.
at::Tensor first_classes(const at::Tensor& sets) { return sets.to(at::kByte).argmax(1); }

}  // namespace sparsight
