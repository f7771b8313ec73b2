// An example call of every kernel of kernels.inc and training_kernels.inc: tests run them at each level
// (tests/kernels/every_kernel_test.cpp), and benchmarks time them (bench/kernels/kernels_bench.cpp). A kernel without
// an example does not compile there.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sparsight/kernels/attention/attention_task.h"
#include "sparsight/kernels/conv/conv_task.h"
#include "sparsight/kernels/kernels.h"
#include "sparsight/kernels/workspace.h"

namespace sparsight::cpu {

struct KernelExample {
  std::string name;
  double operations = 0;                       // multiply-adds counted twice, or elements, of one call
  std::function<void()> run;                   // at the active level; may be called again
  std::function<std::vector<float>()> result;  // of the last call
  double tolerance = 1e-5;                     // between levels, as a share of the largest number; 0: the same bits
};

namespace examples {

// Arrays of an example, which its functions share. Numbers are a fixed pattern in -1 .. 1.
class Arrays {
 public:
  float* add(int64_t count, float scale = 1, float shift = 0) {
    float* const numbers = spaces_.emplace_back(std::make_unique<Workspace>())->floats(count + 16);
    for (int64_t i = 0; i < count + 16; ++i) {
      seed_ = seed_ * 1664525U + 1013904223U;
      numbers[i] = shift + scale * (static_cast<float>(seed_ >> 8) / 8388608.0F - 1);
    }
    return numbers;
  }

 private:
  std::vector<std::unique_ptr<Workspace>> spaces_;
  uint32_t seed_ = 1;
};

inline std::function<std::vector<float>()> read_numbers(const float* first, int64_t count) {
  return [first, count] { return std::vector<float>(first, first + count); };
}

// The arrays live as long as the example.
template <class Run>
KernelExample example(std::shared_ptr<Arrays> arrays, double operations, Run run,
                      std::function<std::vector<float>()> result, double tolerance = 1e-5) {
  return {"", operations, [arrays = std::move(arrays), run] { run(); }, std::move(result), tolerance};
}

constexpr int64_t kRow = 1000;  // no multiple of a vector

inline KernelExample product() {
  constexpr int64_t m = 100, n = 200, k = 300;
  auto arrays = std::make_shared<Arrays>();
  float *a = arrays->add(m * kBlockLd), *b = arrays->add(k * n), *bias = arrays->add(n), *c = arrays->add(m * n);
  const auto run = [=, space = std::make_shared<Workspace>()] {
    Gemm p;
    p.m = m, p.n = n, p.k = k;
    p.a = a, p.a_block = m * kBlockLd;
    p.b = b, p.b_ld = n, p.bias = bias;
    p.c = c, p.c_ld = n;
    kernels().product(p, space->floats(kernels().panel_floats));
  };
  return example(arrays, 2.0 * m * n * k, run, read_numbers(c, m * n));
}

inline KernelExample activate() {
  auto arrays = std::make_shared<Arrays>();
  float *x = arrays->add(kRow, 4), *y = arrays->add(kRow), *slope = arrays->add(kRow);
  return example(
      arrays, kRow, [=] { kernels().activate(Activation::gelu, x, y, slope, kRow); }, read_numbers(y, kRow));
}

inline KernelExample activate_backward() {
  auto arrays = std::make_shared<Arrays>();
  float *x = arrays->add(kRow, 4), *upstream = arrays->add(kRow), *grad = arrays->add(kRow), *y = arrays->add(kRow);
  return example(
      arrays, kRow,
      [=] {
        std::copy_n(upstream, kRow, grad);
        training_kernels().activate_backward(Activation::gelu, x, 0.7F, grad, y, kRow);
      },
      read_numbers(grad, kRow));
}

inline KernelExample multiply() {
  auto arrays = std::make_shared<Arrays>();
  float *x = arrays->add(kRow), *from = arrays->add(kRow), *y = arrays->add(kRow);
  return example(
      arrays, kRow,
      [=] {
        std::copy_n(from, kRow, y);
        kernels().multiply(x, y, kRow);
      },
      read_numbers(y, kRow), 0);
}

inline KernelExample scaled_sum() {
  auto arrays = std::make_shared<Arrays>();
  const std::vector<const float*> rows{arrays->add(kRow), arrays->add(kRow), arrays->add(kRow)};
  const std::vector<float> gates{0.5F, -1.5F, 2};
  float* y = arrays->add(kRow);
  return example(
      arrays, 3 * kRow, [=] { kernels().scaled_sum(rows.data(), gates.data(), 3, y, kRow); }, read_numbers(y, kRow));
}

inline KernelExample dot() {
  auto arrays = std::make_shared<Arrays>();
  float *x = arrays->add(kRow), *y = arrays->add(kRow), *sum = arrays->add(1);
  return example(
      arrays, 2 * kRow, [=] { *sum = kernels().dot(x, y, kRow); }, read_numbers(sum, 1), 1e-4);
}

inline KernelExample add_scaled() {
  auto arrays = std::make_shared<Arrays>();
  float *x = arrays->add(kRow), *from = arrays->add(kRow), *y = arrays->add(kRow);
  return example(
      arrays, 2 * kRow,
      [=] {
        std::copy_n(from, kRow, y);
        kernels().add_scaled(0.3F, x, y, kRow);
      },
      read_numbers(y, kRow));
}

inline KernelExample layer_norm() {
  auto arrays = std::make_shared<Arrays>();
  float *x = arrays->add(kRow, 3, 5), *weight = arrays->add(kRow), *bias = arrays->add(kRow), *y = arrays->add(kRow);
  return example(
      arrays, 8 * kRow, [=] { kernels().layer_norm(x, weight, bias, 1e-6F, kRow, y, kBlock); }, read_numbers(y, kRow));
}

inline KernelExample layer_norm_backward() {
  auto arrays = std::make_shared<Arrays>();
  float *x = arrays->add(kRow), *grad = arrays->add(kRow), *weight = arrays->add(kRow), *y = arrays->add(kRow),
        *of_weight = arrays->add(kRow), *of_bias = arrays->add(kRow);
  return example(
      arrays, 8 * kRow,
      [=] {
        std::fill_n(of_weight, kRow, 0.0F), std::fill_n(of_bias, kRow, 0.0F);
        training_kernels().layer_norm_backward({x, grad, weight, nullptr, {0.1F, 1.7F}, kRow}, y, of_weight, of_bias);
      },
      read_numbers(y, kRow));
}

inline KernelExample softmax() {
  auto arrays = std::make_shared<Arrays>();
  float *x = arrays->add(kRow, 5), *y = arrays->add(kRow);
  return example(
      arrays, 5 * kRow, [=] { kernels().softmax(x, y, kRow); }, read_numbers(y, kRow));
}

inline KernelExample cross_entropy() {
  auto arrays = std::make_shared<Arrays>();
  float *x = arrays->add(kRow, 5), *loss = arrays->add(3);
  return example(
      arrays, 5 * kRow,
      [=] {
        SoftmaxMoments moments{};
        loss[0] = training_kernels().cross_entropy({x, nullptr, 7, 0.9F, 0.1F / kRow, kRow}, &moments);
        loss[1] = moments.max, loss[2] = moments.scale * kRow;
      },
      read_numbers(loss, 3));
}

inline KernelExample cross_entropy_backward() {
  auto arrays = std::make_shared<Arrays>();
  float *x = arrays->add(kRow, 5), *grad = arrays->add(kRow);
  return example(
      arrays, 5 * kRow,
      [=] {
        const CrossEntropyRow row{x, nullptr, 7, 0.9F, 0.1F / kRow, kRow};
        SoftmaxMoments moments{};
        training_kernels().cross_entropy(row, &moments);
        training_kernels().cross_entropy_backward(row, moments, 1, grad);
      },
      read_numbers(grad, kRow));
}

struct AttentionArrays {
  static constexpr int64_t kTokens = 50, kSize = 40;
  std::shared_ptr<Arrays> arrays = std::make_shared<Arrays>();
  float *qkv = arrays->add(kTokens * 3 * kSize), *out = arrays->add(kTokens * kSize), *log_sum = arrays->add(kTokens);
  float *grad = arrays->add(kTokens * kSize), *qkv_grad = arrays->add(kTokens * 3 * kSize);
  float* scratch = arrays->add(attention_backward_floats(kTokens, kSize) + attention_forward_floats(kTokens, kSize));

  AttentionHead head() const {
    return {qkv, qkv + kSize, qkv + 2 * kSize, 3 * kSize, kTokens, kSize, 1 / std::sqrt(static_cast<float>(kSize))};
  }
  void forward() const {
    AttentionForward p;
    p.head = head(), p.count = kTokens;
    p.out = out, p.out_ld = kSize, p.log_sum = log_sum, p.scratch = scratch;
    kernels().attention_forward(p);
  }
};

inline KernelExample attention_forward() {
  const AttentionArrays a;
  constexpr double kWork = 4.0 * AttentionArrays::kTokens * AttentionArrays::kTokens * AttentionArrays::kSize;
  return example(
      a.arrays, kWork, [a] { a.forward(); }, read_numbers(a.out, AttentionArrays::kTokens * AttentionArrays::kSize));
}

inline KernelExample attention_backward() {
  const AttentionArrays a;
  constexpr int64_t kTokens = AttentionArrays::kTokens, kSize = AttentionArrays::kSize;
  return example(
      a.arrays, 14.0 * kTokens * kTokens * kSize,
      [a] {
        a.forward();
        AttentionBackward p;
        p.head = a.head(), p.queries = kTokens;
        p.out = a.out, p.out_grad = a.grad, p.out_ld = kSize, p.log_sum = a.log_sum;
        p.q_grad = a.qkv_grad, p.k_grad = a.qkv_grad + kSize, p.v_grad = a.qkv_grad + 2 * kSize;
        p.scratch = a.scratch;
        training_kernels().attention_backward(p);
      },
      read_numbers(a.qkv_grad, kTokens * 3 * kSize));
}

inline KernelExample adam() {
  auto arrays = std::make_shared<Arrays>();
  float *from = arrays->add(kRow), *value = arrays->add(kRow), *gradient = arrays->add(kRow), *m = arrays->add(kRow),
        *v = arrays->add(kRow), *average = arrays->add(kRow);
  return example(
      arrays, 12 * kRow,
      [=] {
        std::copy_n(from, kRow, value);
        std::fill_n(m, kRow, 0.1F), std::fill_n(v, kRow, 0.2F), std::fill_n(average, kRow, 0.3F);
        training_kernels().adam({1, 0.01F, 0.99F, 0.9F, 0.1F, 0.99F, 0.01F, 1, 1e-8F, -0.01F, 0.1F},
                                {value, gradient, m, v, average, kRow});
      },
      read_numbers(value, kRow));
}

// A 1x1 convolution of 60 positions from 70 to 50 channels.
inline KernelExample convolve() {
  constexpr int64_t m = 60, n = 50, k = 70, kPanels = (n + kPanelColumns - 1) / kPanelColumns;
  auto arrays = std::make_shared<Arrays>();
  float *x = arrays->add(m * k), *panels = arrays->add(kPanels * k * kPanelColumns), *bias = arrays->add(n),
        *y = arrays->add(m * n);
  std::vector<const float*> rows;
  std::vector<int64_t> to;
  for (int64_t i = 0; i < m; ++i) rows.push_back(x + i * k), to.push_back(i * n);
  return example(
      arrays, 2.0 * m * n * k,
      [=] {
        ConvProduct p;
        p.m = m, p.n = n, p.a = rows.data(), p.c_rows = to.data();
        p.runs = 1, p.run = k, p.run_stride = k;
        p.b = panels, p.b_panel = k * kPanelColumns;
        p.bias = bias, p.c = y, p.relu = true;
        kernels().convolve(p);
      },
      read_numbers(y, m * n));
}

inline KernelExample scale_shift() {
  auto arrays = std::make_shared<Arrays>();
  float *x = arrays->add(kRow), *scale = arrays->add(100), *shift = arrays->add(100), *y = arrays->add(kRow);
  return example(
      arrays, 2 * kRow,
      [=] {
        kernels().scale_shift({x, scale, shift, nullptr, y, 10, 100, 100, true});
      },
      read_numbers(y, kRow));
}

inline KernelExample pack_panels() {
  constexpr int64_t kDepth = 70, kColumns = 50, kPanels = (kColumns + kPanelColumns - 1) / kPanelColumns;
  auto arrays = std::make_shared<Arrays>();
  float *matrix = arrays->add(kDepth * kColumns), *panels = arrays->add(kPanels * kDepth * kPanelColumns);
  return example(
      arrays, kDepth * kColumns,
      [=] {
        kernels().pack_panels({matrix, kDepth, true, kDepth, kColumns, WeightType::fp32, panels});
      },
      read_numbers(panels, kPanels * kDepth * kPanelColumns), 0);
}

inline KernelExample random_bits() {
  constexpr int64_t kBlocks = 400;
  const auto bits = std::make_shared<std::vector<uint8_t>>(kBlocks / 2);
  return example(
      std::make_shared<Arrays>(), 4 * kBlocks,
      [=] {
        training_kernels().random_bits({42, 7, 1000, kBlocks, uint64_t{3} << 30, bits->data()});
      },
      [=] { return std::vector<float>(bits->begin(), bits->end()); }, 0);
}

inline KernelExample drop() {
  auto arrays = std::make_shared<Arrays>();
  std::vector<uint8_t> bits;
  for (int64_t i = 0; i <= kRow / 8; ++i) bits.push_back(static_cast<uint8_t>(i * 37));
  float *from = arrays->add(kRow), *x = arrays->add(kRow);
  return example(
      arrays, kRow,
      [=] {
        std::copy_n(from, kRow, x);
        kernels().drop(bits.data(), 1.25F, x, kRow);
      },
      read_numbers(x, kRow), 0);
}

}  // namespace examples

inline std::vector<KernelExample> kernel_examples() {
  std::vector<KernelExample> all;
#define KERNEL(entry, implementation, result, parameters) \
  all.push_back(examples::entry());                       \
  all.back().name = #entry;
#include "sparsight/kernels/kernels.inc"
#include "sparsight/kernels/training_kernels.inc"
#undef KERNEL
  return all;
}

}  // namespace sparsight::cpu
