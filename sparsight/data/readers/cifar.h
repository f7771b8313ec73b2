// The binary version of CIFAR-10 and CIFAR-100 (cs.toronto.edu/~kriz/cifar.html): records of label bytes (one for
// CIFAR-10; coarse, fine for CIFAR-100) and 3072 bytes, the red, green and blue planes of 32 x 32 pixels.
#pragma once

#include <string>
#include <vector>

#include "sparsight/data/readers/bytes.h"

namespace sparsight {

struct CifarRecords {
  at::Tensor images;                         // [N,3,32,32] uint8
  std::vector<std::vector<uint8_t>> labels;  // [label_bytes][N]
};

// label_bytes: 1 or 2. Raises Error if the bytes are not a whole number (at least one) of records.
CifarRecords parse_cifar(ByteView bytes, size_t label_bytes, const std::string& name);
CifarRecords read_cifar(const std::string& path, size_t label_bytes);

}  // namespace sparsight
