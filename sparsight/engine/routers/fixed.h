// Routers that do not look at the tokens: hash and round_robin of moe/routers/. Their gates are 1/k.
#pragma once

#include "sparsight/engine/router.h"

namespace sparsight::engine {

// The experts of a token with this key: k distinct ones, written to `chosen`.
void hash_experts(uint64_t seed, int64_t key, int64_t experts, int64_t k, int64_t* chosen);

// Token s of an image goes to experts that are a hash of s.
class HashRouter final : public Router {
 public:
  HashRouter() = default;
  HashRouter(int64_t experts, int64_t k, uint64_t seed) : experts_(experts), k_(k), seed_(seed) {}
  int64_t experts() const override { return experts_; }
  void choose(const RouterInput& input, Routing& routing) const override;
  const char* kind() const override { return "hash"; }
  void visit(Fields& fields, const Shape& tokens) override;
  OnnxRouting export_onnx(OnnxGraph& graph, const OnnxTokens& tokens) const override;

 private:
  int64_t experts_ = 1, k_ = 1;
  uint64_t seed_ = 0;
};

// Each token takes the next k experts, by its number in the dataset.
class RoundRobinRouter final : public Router {
 public:
  RoundRobinRouter() = default;
  RoundRobinRouter(int64_t experts, int64_t k) : experts_(experts), k_(k) {}
  int64_t experts() const override { return experts_; }
  void choose(const RouterInput& input, Routing& routing) const override;
  const char* kind() const override { return "round robin"; }
  void visit(Fields& fields, const Shape& tokens) override;
  OnnxRouting export_onnx(OnnxGraph& graph, const OnnxTokens& tokens) const override;

 private:
  int64_t experts_ = 1, k_ = 1;
};

}  // namespace sparsight::engine
