// Routers that give each token, or each image, its k best experts: softmax_topk, switch_top1, noisy_topk,
// dense_softmax, cosine, base, sinkhorn, gshard_top2 and per_image of moe/routers/ in evaluation.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "sparsight/engine/router.h"
#include "sparsight/engine/routers/logits.h"

namespace sparsight::engine {

// What the gate of a choice is.
enum class Gates {
  probability,  // the softmax over all experts
  of_chosen,    // the softmax over the chosen
  sigmoid,      // of the logit
};

struct TopKRule {
  int64_t k = 1;
  Gates gates = Gates::probability;
  bool drops_later = false;  // choices after the first are used only where their gate is above:
  double later_above = std::numeric_limits<double>::infinity();
};

// What the router sees instead of the tokens: one vector for each image.
struct ImageVector {
  enum class Source { automatic, class_token, mean_all, mean_patches };
  Source source = Source::automatic;              // the class token if there is one, else the mean of all
  bool norm = false;                              // layer norm of the vector, with
  std::vector<float> norm_weight{}, norm_bias{};  // [D]
  float norm_epsilon = 1e-6F;
};

// Raises UsageError where the tokens of an image have no class token that a router could read.
void check_class_token(const TokenLayout& layout);

class TopKRouter final : public Router {
 public:
  TopKRouter() = default;
  TopKRouter(RouterLogits logits, const TopKRule& rule) : logits_(std::move(logits)), rule_(rule) {}
  // All tokens of an image get the choices of its vector.
  TopKRouter(RouterLogits logits, const TopKRule& rule, ImageVector vector)
      : logits_(std::move(logits)), rule_(rule), vector_(std::move(vector)) {}

  int64_t experts() const override { return logits_.experts(); }
  void choose(const RouterInput& input, Routing& routing) const override;
  const char* kind() const override { return "top k"; }
  void visit(Fields& fields, const Shape& tokens) override;
  OnnxRouting export_onnx(OnnxGraph& graph, const OnnxTokens& tokens) const override;
  int64_t bytes() const override { return logits_.bytes(); }

 private:
  const float* image_vectors(const RouterInput& input, const TokenLayout& layout) const;  // [B,D]
  std::string export_image_vectors(OnnxGraph& graph, const OnnxTokens& tokens) const;

  RouterLogits logits_;
  TopKRule rule_;
  std::optional<ImageVector> vector_;
};

// 1 / (1 + exp(-x))
float sigmoid(float x);

}  // namespace sparsight::engine
