#include "bench/moe/limits.h"

#include <algorithm>
#include <chrono>

#include <ATen/Parallel.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

// Fortran BLAS, from libtorch.
extern "C" void sgemm_(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k,
                       const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
                       const float* beta, float* c, const int* ldc);

namespace sparsight::bench {
namespace {

// c [m,n] = a [m,k] b [k,n], all row-major.
void multiply(int m, int n, int k, const float* a, const float* b, float* c) {
  const float one = 1, zero = 0;
  sgemm_("N", "N", &n, &m, &k, &one, b, &n, a, &k, &zero, c, &n);
}

volatile int64_t sink;  // keeps the compiler from dropping reads

}  // namespace

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double shortest(int rounds, const std::function<void()>& run) {
  double best = 1e30;
  for (int i = 0; i < rounds; ++i) {
    const double start = seconds_now();
    run();
    best = std::min(best, seconds_now() - start);
  }
  return best;
}

double sgemm_rate(int64_t width, int64_t hidden) {
  const int threads = at::get_num_threads(), d = static_cast<int>(width), f = static_cast<int>(hidden);
  double best = 0;
  for (const int rows : {64, 128, 256, 512, 1024}) {
    const at::Tensor x = at::ones({threads, rows, width}), h = at::zeros({threads, rows, hidden}),
                     y = at::zeros_like(x);
    const at::Tensor w1 = at::ones({threads, width, hidden}), w2 = at::ones({threads, hidden, width});
    const int repeat = std::max(1, 4096 / rows);
    const double time = shortest(5, [&] {
      at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t)
          for (int i = 0; i < repeat; ++i) {
            multiply(rows, f, d, x[t].const_data_ptr<float>(), w1[t].const_data_ptr<float>(), h[t].data_ptr<float>());
            multiply(rows, d, f, h[t].const_data_ptr<float>(), w2[t].const_data_ptr<float>(), y[t].data_ptr<float>());
          }
      });
    });
    best = std::max(best, 4.0 * rows * d * f * repeat * threads / time);
  }
  return best;
}

double read_rate(const std::vector<at::Tensor>& weights) {
  const int threads = at::get_num_threads();
  double bytes = 0;
  for (const at::Tensor& w : weights) bytes += 4.0 * static_cast<double>(w.numel());
  const double time = shortest(7, [&] {
    at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t)
        for (const at::Tensor& w : weights) {
          // Four streams at once: more than one lets the memory answer faster.
          const int64_t words = w.numel() / 2, mine = words / threads / 4;
          const auto* from = reinterpret_cast<const int64_t*>(w.const_data_ptr<float>()) + words / threads * t;
          int64_t sum = 0;
          for (int64_t i = 0; i + 8 <= mine; i += 8)
            for (int64_t s = 0; s < 4; ++s)
              for (int64_t j = 0; j < 8; ++j) sum += from[s * mine + i + j];
          sink = sum;
        }
    });
  });
  return bytes / time;
}

}  // namespace sparsight::bench
