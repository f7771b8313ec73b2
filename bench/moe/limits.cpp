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

constexpr int kRowsInAll = 1024;  // rows that each thread multiplies per run

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

Sgemm::Sgemm(int64_t width, int64_t hidden, int rows)
    : width_(static_cast<int>(width)), hidden_(static_cast<int>(hidden)), rows_(rows) {
  const int threads = at::get_num_threads();
  x_ = at::ones({threads, rows, width});
  h_ = at::zeros({threads, rows, hidden});
  y_ = at::zeros_like(x_);
  w1_ = at::ones({threads, width, hidden});
  w2_ = at::ones({threads, hidden, width});
}

Sgemm::Sgemm(int64_t width, int64_t hidden) : Sgemm(width, hidden, 1) {
  double best = 0;
  for (const int rows : {64, 128, 256, 512, 1024}) {
    const Sgemm one(width, hidden, rows);
    const double rate = one.flops() / shortest(5, [&] { one.run(); });
    if (rate > best) best = rate, *this = one;
  }
}

double Sgemm::flops() const {
  const int64_t repeats = kRowsInAll / rows_ * x_.size(0);
  return 4.0 * rows_ * width_ * hidden_ * static_cast<double>(repeats);
}

void Sgemm::run() const {
  at::parallel_for(0, x_.size(0), 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const float *x = x_[t].const_data_ptr<float>(), *w1 = w1_[t].const_data_ptr<float>(),
                  *w2 = w2_[t].const_data_ptr<float>();
      float *h = h_[t].data_ptr<float>(), *y = y_[t].data_ptr<float>();
      for (int i = 0; i < kRowsInAll / rows_; ++i) {
        multiply(rows_, hidden_, width_, x, w1, h);
        multiply(rows_, width_, hidden_, h, w2, y);
      }
    }
  });
}

void read_touched(const ExpertMlpWeights& weights, const at::Tensor& offsets) {
  const int64_t* const offset = offsets.const_data_ptr<int64_t>();
  const int64_t experts = offsets.size(0) - 1, threads = at::get_num_threads();
  at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      for (int64_t e = 0; e < experts; ++e) {
        if (offset[e] == offset[e + 1]) continue;
        for (const at::Tensor* w : {&weights.w1, &weights.w2}) {
          // Four streams at once, which read memory faster than one.
          const int64_t words = w->numel() / experts / 2, share = words / threads / 4;
          const auto* from =
              reinterpret_cast<const int64_t*>(w->const_data_ptr<float>()) + words * e + words / threads * t;
          int64_t sum = 0;
          for (int64_t i = 0; i + 8 <= share; i += 8)
            for (int64_t s = 0; s < 4; ++s)
              for (int64_t j = 0; j < 8; ++j) sum += from[s * share + i + j];
          sink = sum;
        }
      }
  });
}

}  // namespace sparsight::bench
