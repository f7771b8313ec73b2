// NumPy's .npy format, versions 1 to 3 (numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
#pragma once

#include <string>

#include "sparsight/data/readers/bytes.h"

namespace sparsight {

// A contiguous tensor of the stored shape. Little-endian b1 (bool), u1, i1, i4, i8, f4 and f8 in C or Fortran order.
// Raises Error if the header is damaged, the type is not one of these, or the number of values differs from the header.
at::Tensor parse_npy(Bytes bytes, const std::string& name);
at::Tensor read_npy(const std::string& path);

}  // namespace sparsight
