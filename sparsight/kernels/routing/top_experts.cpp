#include "sparsight/kernels/routing/top_experts.h"

#include <cmath>

#include "sparsight/kernels/threads/tasks.h"

namespace sparsight::cpu {
namespace {

constexpr int64_t kTokensOfTask = 1024;

template <class T>
bool better(T a, T b) {
  return a > b || (std::isnan(b) && !std::isnan(a));
}

// Insertion into a sorted list of k. Experts are visited by increasing index, so of equal scores the first stays ahead.
template <class T>
void top_of_row(const T* scores, int64_t experts, int64_t k, int64_t* chosen) {
  int64_t filled = 0;
  for (int64_t expert = 0; expert < experts; ++expert) {
    if (filled == k && !better(scores[expert], scores[chosen[k - 1]])) continue;
    int64_t position = filled < k ? filled++ : k - 1;
    for (; position > 0 && better(scores[expert], scores[chosen[position - 1]]); --position)
      chosen[position] = chosen[position - 1];
    chosen[position] = expert;
  }
}

}  // namespace

template <class T>
void top_experts(Threads& threads, const T* scores, int64_t tokens, int64_t experts, int64_t k, int64_t* chosen) {
  run_ranges(threads, tokens, kTokensOfTask, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token)
      top_of_row(scores + token * experts, experts, k, chosen + token * k);
  });
}

template void top_experts(Threads&, const float*, int64_t, int64_t, int64_t, int64_t*);
template void top_experts(Threads&, const double*, int64_t, int64_t, int64_t, int64_t*);

}  // namespace sparsight::cpu
