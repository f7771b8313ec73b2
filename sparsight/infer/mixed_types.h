// Which steps of a program can be in int8 before its answers get worse than allowed, and which stay in bf16 or fp32.
#pragma once

#include <string>
#include <vector>

#include "sparsight/data/sample.h"
#include "sparsight/engine/program.h"

namespace sparsight {

struct MixedTypes {
  engine::Program program;
  std::vector<std::string> types;  // of each step: one of weight_type_names(), or "" for one without matrices
};

// fp32, bf16, int8: programs of one model. Steps are put into int8 in the order of the error that each alone makes in
// the logits (mean square over the batches), as many as the accuracy allows; the others are in bf16, or in fp32 where
// bf16 costs too much as well. max_drop: in points of top-1 accuracy on the batches.
MixedTypes mix_types(engine::Program fp32, engine::Program bf16, engine::Program int8,
                     const std::vector<Batch>& batches, double max_drop);

}  // namespace sparsight
