// Arrays of random numbers. Element i is a pure function of the stream and of i, whatever the number of threads;
// numbers carry 32 random bits. For T = float and double.
#pragma once

#include "sparsight/core/random.h"
#include "sparsight/kernels/threads/threads.h"

namespace sparsight::cpu {

// Elements `first` .. `first` + count of the stream.
template <class T>
struct RandomRange {
  T* out = nullptr;  // [count]
  int64_t count = 0;
  uint64_t first = 0;
};

template <class T>
void fill_normal(Threads& threads, const RandomRange<T>& range, const RandomStream& stream, double mean, double std);
// From `low` to below `high`.
template <class T>
void fill_uniform(Threads& threads, const RandomRange<T>& range, const RandomStream& stream, double low, double high);
// 1/keep with probability `keep`, else 0.
void fill_keep_mask(Threads& threads, const RandomRange<float>& range, const RandomStream& stream, double keep);

}  // namespace sparsight::cpu
