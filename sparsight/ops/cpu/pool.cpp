#include "sparsight/ops/cpu/pool.h"

#include <sys/mman.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/accumulate.h>

namespace sparsight::cpu {
namespace {

constexpr size_t kPage = size_t{2} << 20;   // large pages: fewer faults, and less to look up
constexpr size_t kSmall = size_t{1} << 20;  // below this torch's own allocation does as well

struct Pool {
  std::mutex mutex;
  std::map<size_t, std::vector<void*>> unused;  // by size
};
Pool& pool() {
  static auto* const only = new Pool;  // never destroyed: tensors may be freed at exit
  return *only;
}

void* take(size_t bytes) {
  {
    const std::scoped_lock lock(pool().mutex);
    auto& list = pool().unused[bytes];
    if (!list.empty()) {
      void* const memory = list.back();
      list.pop_back();
      return memory;
    }
  }
  void* const memory = std::aligned_alloc(kPage, bytes);
  if (!memory) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return memory;
}

}  // namespace

at::Tensor empty_from_pool(at::IntArrayRef sizes) {
  const size_t wanted = static_cast<size_t>(c10::multiply_integers(sizes)) * sizeof(float);
  if (wanted < kSmall) return at::empty(sizes, at::kFloat);
  const size_t bytes = (wanted + kPage - 1) / kPage * kPage;
  const auto give_back = [bytes](void* memory) {
    const std::scoped_lock lock(pool().mutex);
    pool().unused[bytes].push_back(memory);
  };
  return at::from_blob(take(bytes), sizes, give_back, at::kFloat);
}

void release_pool() {
  const std::scoped_lock lock(pool().mutex);
  for (auto& [bytes, list] : pool().unused)
    for (void* memory : list) std::free(memory);
  pool().unused.clear();
}

}  // namespace sparsight::cpu
