// The experts of an MoE layer on the tokens of a batch, by the decision of a route step.
#pragma once

#include <memory>

#include "sparsight/engine/experts.h"
#include "sparsight/engine/step.h"

namespace sparsight::engine {

class ExpertsStep final : public Step {
 public:
  ExpertsStep() = default;
  // to = residual + experts(tokens). residual: none for the experts' output alone. tokens_read: only the first tokens
  // of each image are read later; the others get the residual alone.
  ExpertsStep(std::string layer, int64_t routing, Value tokens, Value residual, Value to,
              std::unique_ptr<Experts> experts, int64_t tokens_read)
      : Step(to),
        layer_(std::move(layer)),
        routing_(routing),
        tokens_(tokens),
        residual_(residual),
        experts_(std::move(experts)),
        tokens_read_(tokens_read) {}

  const char* kind() const override { return "experts"; }
  std::vector<Value> reads() const override { return existing(tokens_, residual_); }
  void run(Frame& frame) const override;
  void visit_fields(Fields& fields) override;
  void export_onnx(OnnxExport& onnx) const override;
  int64_t bytes() const override { return experts_->bytes(); }

  const std::string& layer() const { return layer_; }
  int64_t routing() const { return routing_; }  // the number of the decision
  const Experts& experts() const { return *experts_; }

 private:
  void mix(Frame& frame, const Routing& routing) const;

  std::string layer_;
  int64_t routing_ = 0;
  Value tokens_, residual_;
  std::unique_ptr<Experts> experts_;
  int64_t tokens_read_ = 0;
};

// Shared experts, which every token sees without a gate: to = residual + the sum of the experts. residual: none for 0.
class SharedExpertsStep final : public Step {
 public:
  SharedExpertsStep() = default;
  SharedExpertsStep(Value tokens, Value residual, Value to, std::unique_ptr<Experts> experts)
      : Step(to), tokens_(tokens), residual_(residual), experts_(std::move(experts)) {}
  const char* kind() const override { return "shared experts"; }
  std::vector<Value> reads() const override { return existing(tokens_, residual_); }
  void run(Frame& frame) const override;
  void visit_fields(Fields& fields) override;
  void export_onnx(OnnxExport& onnx) const override;
  int64_t bytes() const override { return experts_->bytes(); }

 private:
  Value tokens_, residual_;
  std::unique_ptr<Experts> experts_;
};

}  // namespace sparsight::engine
