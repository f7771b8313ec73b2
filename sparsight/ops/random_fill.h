// Tensors of random numbers. Element i is a pure function of the stream and of i, whatever the number of threads;
// numbers carry 32 random bits.
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/core/random.h"

namespace sparsight {

// Overwrites a contiguous fp32 or fp64 CPU tensor. Its first element is element `first` of the stream.
void fill_normal(at::Tensor& out, const RandomStream& stream, double mean = 0, double std = 1, uint64_t first = 0);
void fill_uniform(at::Tensor& out, const RandomStream& stream, double low = 0, double high = 1, uint64_t first = 0);

// N(0,1) of `sizes`, fp32 or fp64 as `like`, on the device of `like`, from element `first` of the stream on.
at::Tensor normal_like(const at::Tensor& like, at::IntArrayRef sizes, const RandomStream& stream, uint64_t first = 0);
// U[0,1), likewise.
at::Tensor uniform_like(const at::Tensor& like, at::IntArrayRef sizes, const RandomStream& stream, uint64_t first = 0);
// A dropout mask: 1/keep with probability `keep`, else 0. Of the type and device of `like`, from element `first` of the
// stream on.
at::Tensor keep_mask_like(const at::Tensor& like, at::IntArrayRef sizes, double keep, const RandomStream& stream,
                          uint64_t first = 0);

// Rows of a stream: row r of [rows,columns] is row number[r] of the stream, so that the numbers of a row do not depend
// on which other rows are in the batch.
struct RandomRows {
  int64_t rows = 0;        // R
  int64_t columns = 1;     // of each row
  at::Tensor number = {};  // [R] int64, 0 or above; undefined: 0 .. R-1
};
// N(0,1), U[0,1) and the dropout mask by rows; types and devices as above.
at::Tensor normal_rows(const at::Tensor& like, const RandomRows& rows, const RandomStream& stream);
at::Tensor uniform_rows(const at::Tensor& like, const RandomRows& rows, const RandomStream& stream);
at::Tensor keep_mask_rows(const at::Tensor& like, const RandomRows& rows, double keep, const RandomStream& stream);

}  // namespace sparsight
