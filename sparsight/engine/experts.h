// The experts of a layer for inference. Kinds: MlpExperts here, for the usual ones; LayeredExperts and those of
// engine/conv_experts.h. Letters: moe/axes.md; R rows, grouped by expert; O their outputs.
#pragma once

#include <string>
#include <vector>

#include "sparsight/engine/expert_columns.h"
#include "sparsight/kernels/experts/packed_experts.h"

namespace sparsight::engine {

// How weights become part of a program.
struct WeightForm {
  WeightType type = WeightType::fp32;  // of the matrices of blocks, convolutions and experts
  bool packs_experts = true;           // false: experts in fp32 stay in the model's own memory, which must not change
                                       // then. Packing pays for many images.
};

class Fields;
class OnnxGraph;
struct OnnxRouting;

class Experts {
 public:
  virtual ~Experts() = default;

  virtual int64_t count() const = 0;       // E
  virtual int64_t width() const = 0;       // D
  virtual int64_t outputs() const = 0;     // O
  virtual int64_t bytes() const = 0;       // of the weights
  virtual const char* kind() const = 0;    // "mlp"
  virtual void visit(Fields& fields) = 0;  // its fields in a frozen file (engine/file/fields.h)

  // Null where all experts are in memory.
  virtual ExpertColumns* columns() const { return nullptr; }

  // out [N,O] = residual + the gate-weighted sum of the experts of each token. tokens: [N,D]; residual: [N,O], or null.
  // By default gathers the rows, computes and combines them.
  virtual void run(cpu::Threads& threads, const cpu::ExpertRowNumbers& rows, const float* tokens, const float* residual,
                   float* out) const;
  // rows: [R,D], of which expert e has offsets[e] .. offsets[e+1]; out: [R,O].
  virtual void run_rows(cpu::Threads& threads, const float* rows, const int64_t* offsets, float* out) const = 0;

  // Adds what run() computes to a graph, without the residual: tokens [N,S,D] -> [N,S,O] (engine/onnx/onnx_routing.h).
  std::string export_onnx(OnnxGraph& graph, const std::string& tokens, const OnnxRouting& routing) const;
  // Adds one expert, without a gate: rows [R,D] -> [R,O].
  virtual std::string export_expert(OnnxGraph& graph, int64_t expert, const std::string& rows) const = 0;
  virtual bool gates_rows() const { return false; }  // the gate multiplies what an expert reads, else what it makes
};

// Experts of a layer that are read when they are needed.
struct ColumnLayer {
  std::shared_ptr<ExpertColumns> columns;
  int64_t number = 0;  // in ExpertColumn::layers
  cpu::MlpShape shape;
  int64_t bytes = 0;  // of all experts

  // Raises Error: what writes a model needs all of its experts.
  void check_unused() const;
};

// Two layers between equal widths.
class MlpExperts final : public Experts {
 public:
  MlpExperts() = default;
  MlpExperts(cpu::PackedExperts weights, Activation activation)
      : weights_(std::move(weights)), activation_(activation) {}
  int64_t count() const override { return shape().experts; }
  int64_t width() const override { return shape().width; }
  int64_t outputs() const override { return shape().width; }
  int64_t bytes() const override { return on_demand_.columns ? on_demand_.bytes : weights_.bytes(); }
  ExpertColumns* columns() const override { return on_demand_.columns.get(); }
  const char* kind() const override { return "mlp"; }
  void visit(Fields& fields) override;
  std::string export_expert(OnnxGraph& graph, int64_t expert, const std::string& rows) const override;
  void run(cpu::Threads& threads, const cpu::ExpertRowNumbers& rows, const float* tokens, const float* residual,
           float* out) const override;
  void run_rows(cpu::Threads& threads, const float* rows, const int64_t* offsets, float* out) const override;

 private:
  const cpu::MlpShape& shape() const { return on_demand_.columns ? on_demand_.shape : weights_.shape(); }

  cpu::PackedExperts weights_;  // or:
  ColumnLayer on_demand_;
  Activation activation_ = Activation::gelu;
};

// A linear layer of each expert: rows [R,I] -> [R,O].
struct ExpertLinear {
  int64_t experts = 0, inputs = 0, outputs = 0;  // E, I, O
  std::vector<float> weight;                     // [E,I,O]
  std::vector<float> bias;                       // [E,O], or empty
  void run(cpu::Threads& threads, const float* rows, const int64_t* offsets, float* out) const;
  int64_t bytes() const { return 4 * static_cast<int64_t>(weight.size() + bias.size()); }
  void visit(Fields& fields, const char* name);
  // Adds the layer of one expert: rows [...,I] -> [...,O].
  std::string export_onnx(OnnxGraph& graph, const std::string& name, int64_t expert, const std::string& rows) const;
};

// Linear layers with an activation between each two; in fp32.
class LayeredExperts final : public Experts {
 public:
  LayeredExperts() = default;
  // gated: the first layer's outputs are halves x and g, and the second one gets act(x) g (SwiGLU).
  LayeredExperts(std::vector<ExpertLinear> layers, Activation activation, bool gated = false)
      : layers_(std::move(layers)), activation_(activation), gated_(gated) {}
  int64_t count() const override { return layers_.front().experts; }
  int64_t width() const override { return layers_.front().inputs; }
  int64_t outputs() const override { return layers_.back().outputs; }
  int64_t bytes() const override;
  const char* kind() const override { return "layers"; }
  void visit(Fields& fields) override;
  std::string export_expert(OnnxGraph& graph, int64_t expert, const std::string& rows) const override;
  void run_rows(cpu::Threads& threads, const float* rows, const int64_t* offsets, float* out) const override;

 private:
  std::vector<ExpertLinear> layers_;
  Activation activation_ = Activation::gelu;
  bool gated_ = false;
};

}  // namespace sparsight::engine
