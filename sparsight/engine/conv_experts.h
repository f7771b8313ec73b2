// Experts that are convolutions. Letters: moe/axes.md; R rows, grouped by expert.
#pragma once

#include <vector>

#include "sparsight/engine/conv_chain.h"
#include "sparsight/engine/experts.h"

namespace sparsight::engine {

// Where a kernel is applied: to square patches, [channels, side, side] in a row.
struct PatchWindows {
  int64_t channels = 1, side = 1, kernel = 1, padding = 0, stride = 1;
  int64_t across() const { return (side + 2 * padding - kernel) / stride + 1; }
  int64_t positions() const { return across() * across(); }
  void visit(Fields& fields);
  int64_t taps() const { return channels * kernel * kernel; }
  // rows: [R, channels side side]; out: [R positions, taps], in the order (channel, row, column).
  void gather(cpu::Threads& threads, const float* rows, int64_t count, float* out) const;
  // Adds one expert's convolution of patches [R,channels,side,side] with `filters`, of these taps: ->
  // [R,F,across,across].
  std::string export_onnx(OnnxGraph& graph, const ExpertLinear& filters, int64_t expert,
                          const std::string& patches) const;
};

// Convolution, activation, pooling over positions, linear layer: conv of moe/experts/.
class PatchConvExperts final : public Experts {
 public:
  PatchConvExperts() = default;
  PatchConvExperts(PatchWindows windows, ExpertLinear filters, Activation activation, bool mean, ExpertLinear output)
      : windows_(windows),
        filters_(std::move(filters)),
        activation_(activation),
        mean_(mean),
        output_(std::move(output)) {}
  int64_t count() const override { return filters_.experts; }
  int64_t width() const override { return windows_.channels * windows_.side * windows_.side; }
  int64_t outputs() const override { return output_.outputs; }
  int64_t bytes() const override { return filters_.bytes() + output_.bytes(); }
  const char* kind() const override { return "patch convolution"; }
  void visit(Fields& fields) override;
  std::string export_expert(OnnxGraph& graph, int64_t expert, const std::string& rows) const override;
  void run_rows(cpu::Threads& threads, const float* rows, const int64_t* offsets, float* out) const override;

 private:
  PatchWindows windows_;
  ExpertLinear filters_;
  Activation activation_ = Activation::gelu;
  bool mean_ = false;
  ExpertLinear output_;
};

// Batch norm with running averages, activation and convolution, where each expert writes its own channels of the patch:
// norm_conv of moe/experts/, path "gathered".
class NormConvExperts final : public Experts {
 public:
  NormConvExperts() = default;
  // scale, shift: [E,C]. filters: kernels of `windows` with stride 1 to F channels. gates_input: the gate multiplies
  // the patch, else the output.
  NormConvExperts(PatchWindows windows, std::vector<float> scale, std::vector<float> shift, Activation activation,
                  ExpertLinear filters, bool gates_input)
      : windows_(windows),
        scale_(std::move(scale)),
        shift_(std::move(shift)),
        activation_(activation),
        filters_(std::move(filters)),
        gates_input_(gates_input) {}
  int64_t count() const override { return filters_.experts; }
  int64_t width() const override { return windows_.channels * windows_.side * windows_.side; }
  int64_t outputs() const override { return count() * filters_.outputs * windows_.positions(); }
  int64_t bytes() const override { return filters_.bytes() + 4 * static_cast<int64_t>(scale_.size() + shift_.size()); }
  const char* kind() const override { return "norm and convolution"; }
  void visit(Fields& fields) override;
  std::string export_expert(OnnxGraph& graph, int64_t expert, const std::string& rows) const override;
  bool gates_rows() const override { return gates_input_; }
  void run(cpu::Threads& threads, const cpu::ExpertRowNumbers& rows, const float* tokens, const float* residual,
           float* out) const override;
  void run_rows(cpu::Threads& threads, const float* rows, const int64_t* offsets, float* out) const override;

 private:
  PatchWindows windows_;
  std::vector<float> scale_, shift_;
  Activation activation_ = Activation::gelu;
  ExpertLinear filters_;
  bool gates_input_ = false;
};

// A network's block that exists once for each expert: block of moe/experts/. A row is a map, channels last.
class BlockExperts final : public Experts {
 public:
  BlockExperts() = default;
  BlockExperts(std::vector<ConvChain> blocks, ConvChain::Map in) : blocks_(std::move(blocks)), in_(in) {}
  int64_t count() const override { return static_cast<int64_t>(blocks_.size()); }
  int64_t width() const override { return in_.positions() * in_.channels; }
  int64_t outputs() const override;
  int64_t bytes() const override;
  const char* kind() const override { return "blocks"; }
  void visit(Fields& fields) override;
  std::string export_expert(OnnxGraph& graph, int64_t expert, const std::string& rows) const override;
  void run_rows(cpu::Threads& threads, const float* rows, const int64_t* offsets, float* out) const override;

 private:
  std::vector<ConvChain> blocks_;
  ConvChain::Map in_;
};

}  // namespace sparsight::engine
