// Steps of vision transformers: patches to tokens, and a block's dense part.
#pragma once

#include <memory>
#include <vector>

#include "sparsight/engine/patch_embedding.h"
#include "sparsight/engine/step.h"
#include "sparsight/engine/transformer_block.h"

namespace sparsight::engine {

class EmbedStep final : public Step {
 public:
  EmbedStep() = default;
  // from: planes of `channels`, or a map. prefix: [prefix,D], class and register tokens with their positions;
  // positions: [S,D] of the patches.
  EmbedStep(Value from, Value to, int64_t planes, PatchEmbedding patches, std::vector<float> prefix,
            std::vector<float> positions)
      : Step(to),
        from_(from),
        planes_(planes),
        patches_(std::move(patches)),
        prefix_(std::move(prefix)),
        positions_(std::move(positions)) {}
  const char* kind() const override { return "embed"; }
  std::vector<Value> reads() const override { return {from_}; }
  void run(Frame& frame) const override;
  void visit_fields(Fields& fields) override;
  void export_onnx(OnnxExport& onnx) const override;
  int64_t bytes() const override;

 private:
  Value from_;
  int64_t planes_ = 0;  // channels of planes; 0: `from` is a map
  PatchEmbedding patches_;
  std::vector<float> prefix_, positions_;
};

class BlockStep final : public Step {
 public:
  BlockStep() = default;
  // to: the first tokens of each image, or all.
  BlockStep(Value from, Value to, TransformerBlock block) : Step(to), from_(from), block_(std::move(block)) {}
  // To be read from a file, as one of a kind with norms of queries and keys. Kinds of their own, and no field, since
  // files of before these norms have none.
  static std::unique_ptr<Step> with_qk_norm();
  const char* kind() const override;
  std::vector<Value> reads() const override { return {from_}; }
  void run(Frame& frame) const override;
  void visit_fields(Fields& fields) override;
  void export_onnx(OnnxExport& onnx) const override;
  int64_t bytes() const override { return block_.bytes(); }

 private:
  Value from_;
  TransformerBlock block_;
};

}  // namespace sparsight::engine
