// Weights under the names of another library: a file that timm, torchvision, transformers or DomainBed loads.
#pragma once

#include <cstdint>
#include <string>

#include "sparsight/data/transforms/normalize.h"
#include "sparsight/io/atomic_file.h"

namespace sparsight {

struct ConvertRequest {
  std::string from;     // a checkpoint, of which averaged weights count, or a file of any library (read_weights())
  std::string library;  // one of naming_libraries()
  std::string to;       // safetensors file to write
  Existing existing = Existing::replace;
};

struct ConvertedWeights {
  int64_t tensors = 0;
  PixelStatistics pixels;  // those of `from`, which the file cannot say; empty if there are none
};

// Raises UsageError for a library that has no such model, and Error for tensors that its model does not have.
ConvertedWeights convert_weights(const ConvertRequest& request);

}  // namespace sparsight
