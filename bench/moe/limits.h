// What the machine can do: the rate of single-precision matrix products, and the rate at which weights can be read.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight::bench {

double seconds_now();
// The shortest of `rounds` runs.
double shortest(int rounds, const std::function<void()>& run);

// Floating-point operations a second of torch's sgemm on all threads: pairs of products [rows,D]x[D,F] and
// [rows,F]x[F,D] whose operands each thread keeps in its cache, at the best number of rows.
double sgemm_rate(int64_t width, int64_t hidden);

// Bytes a second at which all threads together read `weights` (fp32, as large as they are: a set of weights that fits
// into a cache is read from there).
double read_rate(const std::vector<at::Tensor>& weights);

}  // namespace sparsight::bench
