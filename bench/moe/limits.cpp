#include "bench/moe/limits.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "sparsight/ops/grouped_linear.h"

// Fortran BLAS, from libtorch.
extern "C" void sgemm_(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k,
                       const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
                       const float* beta, float* c, const int* ldc);

namespace sparsight::bench {
namespace {

// c [m,n] = a [m,k] b [k,n], all row-major.
void multiply(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c) {
  const float one = 1, zero = 0;
  const int rows = static_cast<int>(m), columns = static_cast<int>(n), depth = static_cast<int>(k);
  sgemm_("N", "N", &columns, &rows, &depth, &one, b, &columns, a, &depth, &zero, c, &columns);
}

volatile int64_t sink;  // keeps the compiler from dropping reads

// Calls visit(expert, first row, rows) for each expert that has rows.
template <class Visit>
void for_each_touched(const at::Tensor& offsets, const Visit& visit) {
  const int64_t* const offset = offsets.const_data_ptr<int64_t>();
  for (int64_t e = 0; e + 1 < offsets.size(0); ++e)
    if (offset[e] < offset[e + 1]) visit(e, offset[e], offset[e + 1] - offset[e]);
}

// Share t of `threads` of one expert's weights.
void read_share(const at::Tensor& weight, int64_t expert, int64_t t, int64_t threads) {
  // Four streams at once, which read memory faster than one.
  const int64_t words = static_cast<int64_t>(weight.nbytes()) / weight.size(0) / 8, share = words / threads / 4;
  const auto* from = reinterpret_cast<const int64_t*>(weight.const_data_ptr()) + words * expert + words / threads * t;
  int64_t sum = 0;
  for (int64_t i = 0; i + 8 <= share; i += 8)
    for (int64_t s = 0; s < 4; ++s)
      for (int64_t j = 0; j < 8; ++j) sum += from[s * share + i + j];
  sink = sum;
}

}  // namespace

StoredWeights stored(const ExpertMlpWeights& weights) { return {weights.w1.detach(), weights.w2.detach()}; }

StoredWeights stored(const PackedExperts& packed) {
  if (packed.order == PackOrder::plain) return stored(packed.weights);
  return {packed.storage};
}

double bytes_per_expert(const StoredWeights& weights) {
  double bytes = 0;
  for (const at::Tensor& w : weights) bytes += static_cast<double>(w.nbytes()) / static_cast<double>(w.size(0));
  return bytes;
}

void read_touched(const StoredWeights& weights, const at::Tensor& offsets) {
  const int64_t threads = at::get_num_threads();
  at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      for_each_touched(offsets, [&](int64_t e, int64_t, int64_t) {
        for (const at::Tensor& w : weights) read_share(w, e, t, threads);
      });
  });
}

Products::Products(const std::vector<Load>& loads, const ExpertMlpWeights& weights)
    : loads_(loads), weights_{weights.w1.detach(), {}, weights.w2.detach(), {}} {
  const int64_t rows = loads.front().rows.map.row_token.size(0);
  x_ = at::ones({rows, kWidth});
  h_ = at::ones({rows, kHidden});
  out1_ = at::zeros_like(h_);
  out2_ = at::zeros_like(x_);
  plain_ = onednn_experts(weights, 0);
  packed_ = onednn_experts(weights, std::max<int64_t>(1, rows / weights.w1.size(0)));
}

const char* Products::name(int way) {
  static const char* const names[kWays] = {"MKL", "oneDNN", "oneDNN packed", "ours"};
  return names[way];
}

void Products::run(int way, int load) const {
  const Load& one = loads_[static_cast<size_t>(load)];
  if (way == 0) run_mkl(one);
  if (way == 1) run_onednn(one, plain_);
  if (way == 2) run_onednn(one, packed_);
  if (way == 3) {
    grouped_linear_forward(x_, one.rows.offsets, weights_.w1, {});
    grouped_linear_forward(h_, one.rows.offsets, weights_.w2, {});
  }
}

void Products::run_mkl(const Load& load) const {
  const float *x = x_.const_data_ptr<float>(), *h = h_.const_data_ptr<float>(),
              *w1 = weights_.w1.const_data_ptr<float>(), *w2 = weights_.w2.const_data_ptr<float>();
  float *out1 = out1_.data_ptr<float>(), *out2 = out2_.data_ptr<float>();
  for_each_touched(load.rows.offsets, [&](int64_t e, int64_t first, int64_t rows) {
    multiply(rows, kHidden, kWidth, x + first * kWidth, w1 + e * kWidth * kHidden, out1 + first * kHidden);
    multiply(rows, kWidth, kHidden, h + first * kHidden, w2 + e * kWidth * kHidden, out2 + first * kWidth);
  });
}

void Products::run_onednn(const Load& load, const OnednnExperts& experts) const {
  for_each_touched(load.rows.offsets, [&](int64_t e, int64_t first, int64_t rows) {
    const auto i = static_cast<size_t>(e);
    onednn_product(x_.narrow(0, first, rows), experts.w1[i], {}, false);
    onednn_product(h_.narrow(0, first, rows), experts.w2[i], {}, false);
  });
}

}  // namespace sparsight::bench
