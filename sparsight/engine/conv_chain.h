// A few convolutions in a row for inference: packed weights, norms folded or fused, no autograd and no torch.
// Maps are channels last, [B,H,W,C]. Threads split rows and channels of the maps, several small maps at a time; the
// bits depend neither on their number nor on the batch.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sparsight/kernels/conv/depthwise_conv.h"
#include "sparsight/kernels/conv/packed_conv.h"
#include "sparsight/kernels/threads/threads.h"

namespace sparsight::engine {

// y = relu(scale x + shift): a batch norm with its running averages, per channel.
struct Affine {
  std::vector<float> scale, shift;  // [C], or empty: x itself
};

// Over groups of channels; `groups` 0: none.
struct GroupNorm {
  std::vector<float> weight, bias;  // [C]
  int64_t groups = 0;
  double epsilon = 0;
};

class Fields;
class OnnxGraph;

// The maps that steps read and write: the input, the output, or one of two between them. No step writes what it reads.
enum class ConvBuffer { input, output, hidden, second_hidden };

// to = relu(norm(conv(before(from))) + residual), where `before` and `norm` may be missing, and so may the residual and
// the last relu. With relu_first: norm(relu(conv(...))) + residual. A depthwise convolution has neither `before` nor a
// norm nor a residual.
struct ConvStep {
  cpu::PackedConv conv;
  cpu::DepthwiseConv depthwise;  // instead of `conv`, if it has channels
  int64_t kernel = 1, stride = 1;
  bool same = false;  // zero padding as ConvPadding::same, else kernel / 2 on each edge
  Affine before;
  GroupNorm norm;
  bool has_residual = false;
  ConvBuffer residual = ConvBuffer::input;
  bool relu = false;
  float limit = std::numeric_limits<float>::infinity();  // of a step without `norm`: min(., limit), 6 for ReLU6
  bool relu_first = false;                               // with a norm, and instead of `relu`
  ConvBuffer from = ConvBuffer::input, to = ConvBuffer::output;

  bool is_depthwise() const { return depthwise.channels() > 0; }
  int64_t inputs() const { return is_depthwise() ? depthwise.channels() : conv.inputs(); }
  int64_t outputs() const { return is_depthwise() ? depthwise.channels() : conv.outputs(); }
  int64_t bytes() const { return is_depthwise() ? depthwise.bytes() : conv.bytes(); }
  void visit(Fields& fields);
  WeightType type() const { return is_depthwise() ? depthwise.type() : conv.type(); }
};

class ConvChain {
 public:
  ConvChain() = default;
  explicit ConvChain(std::vector<ConvStep> steps) : steps_(std::move(steps)) {}

  struct Map {
    int64_t height = 0, width = 0, channels = 0;
    int64_t positions() const { return height * width; }
  };
  Map output(Map input) const;
  // x: [images, input], y: [images, output].
  void run(cpu::Threads& threads, const float* x, float* y, int64_t images, Map input) const;

  WeightType type() const { return steps_.empty() ? WeightType::fp32 : steps_.front().type(); }
  int64_t bytes() const;  // of the packed weights
  void visit(Fields& fields, Map input);
  std::string export_onnx(OnnxGraph& graph, const std::string& map, Map input) const;  // [B,C,H,W]

 private:
  void run_some(cpu::Threads& threads, const float* x, float* y, int64_t images, Map input) const;
  std::vector<ConvStep> steps_;
};

}  // namespace sparsight::engine
