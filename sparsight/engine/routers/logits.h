// The logits of routers: a linear map of the tokens, or cosines with the experts in a space of their own. The same
// products as ops/grouped_linear.h, so the same bits as in training.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sparsight/kernels/gemm/weight_view.h"
#include "sparsight/kernels/threads/threads.h"

namespace sparsight::engine {

class Fields;
class OnnxGraph;

// x W + b for rows x.
class LinearMap {
 public:
  LinearMap() = default;
  // weight: [outputs,inputs], or [inputs,outputs] if not `transposed`. bias: [outputs], or empty.
  LinearMap(std::vector<float> weight, int64_t inputs, int64_t outputs, bool transposed, std::vector<float> bias = {});

  void visit(Fields& fields, const char* name, int64_t inputs);  // inputs: those that it must have
  // x [...,inputs] -> [...,outputs]
  std::string export_onnx(OnnxGraph& graph, const std::string& name, const std::string& x) const;
  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }
  bool transposed() const { return transposed_; }
  int64_t bytes() const { return static_cast<int64_t>((weight_.size() + bias_.size()) * sizeof(float)); }
  // rows: [count,inputs]; out: [count,outputs].
  void run(cpu::Threads& threads, const float* rows, int64_t count, float* out) const;
  // Outputs first .. first + number alone; out: [count,number].
  void run(cpu::Threads& threads, const float* rows, int64_t count, int64_t first, int64_t number, float* out) const;

 private:
  std::vector<float> weight_, bias_;
  int64_t inputs_ = 1, outputs_ = 1;
  bool transposed_ = true;
};

class RouterLogits {
 public:
  RouterLogits() = default;
  explicit RouterLogits(LinearMap map) : map_(std::move(map)) {}
  // The rows of `projector`, divided by their norms, are mapped.
  RouterLogits(LinearMap projector, LinearMap map) : map_(std::move(map)), projector_(std::move(projector)) {}

  int64_t experts() const { return map_.outputs(); }
  void visit(Fields& fields, int64_t width);
  std::string export_onnx(OnnxGraph& graph, const std::string& tokens) const;  // [...,D] -> [...,E]
  int64_t width() const { return (projector_ ? *projector_ : map_).inputs(); }
  int64_t bytes() const { return map_.bytes() + (projector_ ? projector_->bytes() : 0); }
  void run(cpu::Threads& threads, const float* tokens, int64_t count, float* logits) const;  // [count,experts]

 private:
  LinearMap map_;
  std::optional<LinearMap> projector_;
};

// x / max(|x|, 1e-12), row by row.
void normalise_rows(float* rows, int64_t count, int64_t width);

}  // namespace sparsight::engine
