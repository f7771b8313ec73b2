// Dropout masks of one bit per element.
#pragma once

#include "sparsight/core/random.h"
#include "sparsight/kernels/threads/threads.h"

namespace sparsight::cpu {

struct DropoutBits {
  int64_t rows = 0, columns = 1;    // R, C
  const int64_t* number = nullptr;  // [R]: row r of the mask is row number[r] of the stream; null: r
  double keep = 1;                  // above 0 and below 1
  uint8_t* bits = nullptr;          // [R,ceil(C/8)]: column c is bit c % 8 of byte c / 8
};

// A bit is 1 with probability `keep`. All bits are written; those past the last column are 0.
void sample_dropout_bits(Threads& threads, const DropoutBits& mask, const RandomStream& stream);

}  // namespace sparsight::cpu
