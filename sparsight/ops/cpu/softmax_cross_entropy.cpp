#include "sparsight/ops/cpu/softmax_cross_entropy.h"

#include <algorithm>

#include <ATen/ops/empty.h>

#include "sparsight/ops/cpu/arena.h"
#include "sparsight/ops/cpu/kernels.h"
#include "sparsight/ops/cpu/tasks.h"

namespace sparsight::cpu {
namespace {

constexpr int64_t kLogitsOfTask = 16384;  // some microseconds of work

class CrossEntropyRows {
 public:
  CrossEntropyRows(const at::Tensor& logits, const at::Tensor& targets, double label_smoothing)
      : logits_(logits.const_data_ptr<float>()), rows_(logits.size(0)), classes_(logits.size(1)) {
    if (targets.dim() == 2) {
      targets_ = targets.const_data_ptr<float>();
    } else {
      labels_ = targets.const_data_ptr<int64_t>();
      own_ = static_cast<float>(1 - label_smoothing);
      shared_ = static_cast<float>(label_smoothing / static_cast<double>(classes_));
    }
  }

  // Calls body(number, row) for each row, on several threads.
  template <class Body>
  void for_each(const Body& body) const {
    run_ranges(rows_, std::max<int64_t>(1, kLogitsOfTask / classes_), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) body(r, row(r));
    });
  }

 private:
  CrossEntropyRow row(int64_t r) const {
    return {.logits = logits_ + r * classes_,
            .targets = targets_ ? targets_ + r * classes_ : nullptr,
            .label = labels_ ? labels_[r] : 0,
            .own = own_,
            .shared = shared_,
            .classes = classes_};
  }

  const float *logits_, *targets_ = nullptr;
  const int64_t* labels_ = nullptr;
  float own_ = 0, shared_ = 0;
  int64_t rows_, classes_;
};

}  // namespace

CrossEntropyOutput softmax_cross_entropy_forward(const at::Tensor& logits, const at::Tensor& targets,
                                                 double label_smoothing, bool needs_moments) {
  const int64_t rows = logits.size(0);
  CrossEntropyOutput output{at::empty({rows}, at::kFloat), {}};
  if (needs_moments) output.moments = at::empty({rows, 2}, at::kFloat);
  float* const loss = output.loss.data_ptr<float>();
  float* const moments = needs_moments ? output.moments.data_ptr<float>() : nullptr;
  const auto kernel = kernels().cross_entropy;
  CrossEntropyRows(logits, targets, label_smoothing).for_each([&](int64_t r, const CrossEntropyRow& row) {
    SoftmaxMoments of_row{};
    loss[r] = kernel(row, &of_row);
    if (moments) moments[2 * r] = of_row.max, moments[2 * r + 1] = of_row.scale;
  });
  return output;
}

at::Tensor softmax_cross_entropy_backward(const at::Tensor& grad, const at::Tensor& logits, const at::Tensor& targets,
                                          double label_smoothing, const at::Tensor& moments) {
  at::Tensor out = empty_from_arena(logits.sizes());
  const float *const g = grad.const_data_ptr<float>(), *const m = moments.const_data_ptr<float>();
  float* const to = out.data_ptr<float>();
  const auto kernel = kernels().cross_entropy_backward;
  CrossEntropyRows(logits, targets, label_smoothing).for_each([&](int64_t r, const CrossEntropyRow& row) {
    kernel(row, {m[2 * r], m[2 * r + 1]}, g[r], to + r * row.classes);
  });
  return out;
}

}  // namespace sparsight::cpu
