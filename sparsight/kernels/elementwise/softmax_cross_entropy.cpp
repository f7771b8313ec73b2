#include "sparsight/kernels/elementwise/softmax_cross_entropy.h"

#include <algorithm>

#include "sparsight/kernels/kernels.h"
#include "sparsight/kernels/threads/tasks.h"

namespace sparsight::cpu {
namespace {

constexpr int64_t kLogitsOfTask = 16384;  // some microseconds of work

CrossEntropyRow class_row(const CrossEntropyRows& rows, int64_t r) {
  CrossEntropyRow row{.logits = rows.logits + r * rows.classes,
                      .targets = rows.targets ? rows.targets + r * rows.classes : nullptr,
                      .label = 0,
                      .own = 0,
                      .shared = 0,
                      .classes = rows.classes};
  if (rows.targets) return row;
  row.label = rows.labels[r];
  row.own = static_cast<float>(1 - rows.label_smoothing);
  row.shared = static_cast<float>(rows.label_smoothing / static_cast<double>(rows.classes));
  return row;
}

// Calls body(number, row) for each row.
template <class Body>
void for_each_row(Threads& threads, const CrossEntropyRows& rows, const Body& body) {
  run_ranges(threads, rows.rows, std::max<int64_t>(1, kLogitsOfTask / rows.classes), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) body(r, class_row(rows, r));
  });
}

}  // namespace

void softmax_cross_entropy(Threads& threads, const CrossEntropyRows& rows, float* loss, float* moments) {
  const auto kernel = training_kernels().cross_entropy;
  for_each_row(threads, rows, [&](int64_t r, const CrossEntropyRow& row) {
    SoftmaxMoments of_row{};
    loss[r] = kernel(row, &of_row);
    if (moments) moments[2 * r] = of_row.max, moments[2 * r + 1] = of_row.scale;
  });
}

void softmax_cross_entropy_backward(Threads& threads, const CrossEntropyRows& rows, const float* moments,
                                    const float* grad, float* out) {
  const auto kernel = training_kernels().cross_entropy_backward;
  for_each_row(threads, rows, [&](int64_t r, const CrossEntropyRow& row) {
    kernel(row, {moments[2 * r], moments[2 * r + 1]}, grad[r], out + r * row.classes);
  });
}

}  // namespace sparsight::cpu
