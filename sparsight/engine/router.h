// A trained router without tensors: tokens in, Routing out, in evaluation. Kinds: engine/routers/. What each computes,
// with its source: the router of the same name in moe/routers/, which compiles to it. Letters: moe/axes.md.
#pragma once

#include "sparsight/engine/routing.h"
#include "sparsight/engine/value.h"
#include "sparsight/kernels/threads/threads.h"

namespace sparsight::engine {

struct RouterInput {
  cpu::Threads& threads;
  const float* tokens = nullptr;   // [N,D]
  const int64_t* image = nullptr;  // [B]: number of each image in the dataset; null: 0 .. B-1
  const int64_t* group = nullptr;  // [B]: images with the same number share the experts' buffers; null: by the settings
};

class Fields;
class OnnxGraph;
struct OnnxRouting;
struct OnnxTokens;

class Router {
 public:
  Router() = default;
  virtual ~Router() = default;

  virtual int64_t experts() const = 0;  // E
  // The decision before capacity: assignments with their gates, logits and scores, into a routing that has been started
  // with the layout of the tokens (Routing::start).
  virtual void choose(const RouterInput& input, Routing& routing) const = 0;
  virtual int64_t bytes() const { return 0; }  // of its weights
  virtual const char* kind() const = 0;        // "top k"
  // Its fields in a frozen file (engine/file/fields.h). tokens: what it decides about.
  virtual void visit(Fields& fields, const Shape& tokens) = 0;
  // Adds what choose() computes to a graph (engine/onnx/onnx_routing.h). Raises Error for what ONNX cannot express.
  virtual OnnxRouting export_onnx(OnnxGraph& graph, const OnnxTokens& tokens) const = 0;
};

}  // namespace sparsight::engine
