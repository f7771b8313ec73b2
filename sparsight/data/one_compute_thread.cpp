#include "sparsight/data/one_compute_thread.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#include <ATen/Parallel.h>

namespace sparsight {
namespace {

// at::set_num_threads would also change the default of threads yet to come.
void set_threads([[maybe_unused]] int threads) {
#ifdef _OPENMP
  omp_set_num_threads(threads);
#endif
}

}  // namespace

// Asking torch first makes it set this thread up before it is overridden.
OneComputeThread::OneComputeThread(bool small) : before_(at::get_num_threads()) {
  if (small) set_threads(1);
}

OneComputeThread::~OneComputeThread() { set_threads(before_); }

}  // namespace sparsight
