// The smallest move onto a hyperplane within a box, for FAB (Croce and Hein 2020, "Minimally distorted adversarial
// examples with a fast adaptive boundary attack", section 2.2).
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/attacks/threat_model.h"

namespace sparsight {

// The move d of least norm with <w, x + d> = <w, x> - excess and x + d in `range`, for each row. Where the box does not
// reach the hyperplane: the move to the corner closest to it. x: [B,D] in `range`; w: [B,D]; excess: [B]. Returns
// [B,D].
at::Tensor move_to_hyperplane(const at::Tensor& x, const at::Tensor& w, const at::Tensor& excess, Norm norm,
                              const PixelRange& range);

}  // namespace sparsight
