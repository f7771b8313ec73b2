#include "sparsight/papers/pmoe/two_layer/two_layer_head.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/ops/empty_like.h>

#include "sparsight/core/error.h"

namespace sparsight::pmoe {
namespace {

// f: [O] of one image. Overwrites f with the gradient of the image's loss and returns the loss.
double loss_and_gradient(std::vector<double>::iterator f, int64_t outputs, int64_t label, int64_t* wrong) {
  if (outputs == 1) {  // log(1 + exp(-y f)), y = +1 for class 1
    const double y = label == 1 ? 1 : -1, margin = y * *f;
    *wrong += margin > 0 ? 0 : 1;
    *f = margin > 0 ? -y * std::exp(-margin) / (1 + std::exp(-margin)) : -y / (1 + std::exp(margin));
    return std::max(-margin, 0.0) + std::log1p(std::exp(-std::abs(margin)));
  }
  const auto end = f + outputs;
  const auto maximum = std::max_element(f, end);
  *wrong += maximum - f == label ? 0 : 1;
  const double largest = *maximum, own = *(f + label);
  double sum = 0;
  for (auto i = f; i != end; ++i) sum += std::exp(*i - largest);
  for (auto i = f; i != end; ++i) *i = std::exp(*i - largest) / sum;
  *(f + label) -= 1;
  return std::log(sum) + largest - own;
}

template <class T>
HeadLoss run(const TwoLayerHead& head, at::Tensor& hidden) {
  const int64_t experts = head.output.size(0), filters = head.output.size(1), outputs = head.output.size(2),
                images = head.labels.size(0), rows = hidden.size(0), each = rows / (experts * images);
  const T* const a = head.output.const_data_ptr<T>();
  const T* const gate = head.gate.defined() ? head.gate.const_data_ptr<T>() : nullptr;
  T* const h = hidden.mutable_data_ptr<T>();
  std::vector<double> answer(rows * outputs), f(images * outputs);
  for (int64_t row = 0; row < rows; ++row) {
    const T *const neuron = h + row * filters, *const weight = a + row / (images * each) * filters * outputs;
    for (int64_t o = 0; o < outputs; ++o) {
      T sum = 0;
      for (int64_t r = 0; r < filters; ++r) sum += weight[r * outputs + o] * std::max(neuron[r], T(0));
      answer[row * outputs + o] = sum;
      f[row / each % images * outputs + o] += sum * (gate ? gate[row] : 1) / head.divisor;
    }
  }
  HeadLoss result;
  const auto* const labels = head.labels.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < images; ++i)
    result.loss += loss_and_gradient(f.begin() + i * outputs, outputs, labels[i], &result.wrong);
  const double scale = 1 / (head.divisor * static_cast<double>(images));
  for (double& grad : f) grad *= scale;

  if (gate) result.grad_gate = at::empty_like(head.gate);
  T* const grad_gate = gate ? result.grad_gate.mutable_data_ptr<T>() : nullptr;
  for (int64_t row = 0; row < rows; ++row) {
    T* const neuron = h + row * filters;
    const T* const weight = a + row / (images * each) * filters * outputs;
    const double* const grad = f.data() + row / each % images * outputs;
    if (grad_gate) {
      double sum = 0;
      for (int64_t o = 0; o < outputs; ++o) sum += answer[row * outputs + o] * grad[o];
      grad_gate[row] = static_cast<T>(sum);
    }
    for (int64_t r = 0; r < filters; ++r) {
      T sum = 0;
      for (int64_t o = 0; o < outputs; ++o) sum += weight[r * outputs + o] * static_cast<T>(grad[o]);
      neuron[r] = neuron[r] > 0 ? sum * (gate ? gate[row] : T(1)) : T(0);
    }
  }
  return result;
}

}  // namespace

HeadLoss two_layer_head(const TwoLayerHead& head, at::Tensor& hidden) {
  SPARSIGHT_CHECK(hidden.is_contiguous() && head.output.is_contiguous() && hidden.size(1) == head.output.size(1));
  SPARSIGHT_CHECK(!head.gate.defined() || head.gate.is_contiguous());
  return hidden.scalar_type() == at::kDouble ? run<double>(head, hidden) : run<float>(head, hidden);
}

}  // namespace sparsight::pmoe
