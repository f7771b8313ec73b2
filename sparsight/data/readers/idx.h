// The idx format of the MNIST family (yann.lecun.com/exdb/mnist): two zero bytes, a type, a rank, the sizes as
// big-endian 32-bit numbers, the values. Only unsigned bytes are read, which is what images and labels are.
#pragma once

#include <string>

#include "sparsight/data/readers/bytes.h"

namespace sparsight {

// A uint8 tensor of 1 to 4 axes from the bytes of a plain or gzip file. `name` appears in errors. Raises Error if the
// magic number is wrong or the number of values differs from the header.
at::Tensor parse_idx(Bytes bytes, const std::string& name);
at::Tensor read_idx(const std::string& path);

}  // namespace sparsight
