// Writes a program as an ONNX file: standard operators alone, and any number N of images. Steps, routers and kinds of
// experts add their own nodes, in export_onnx(). Letters: moe/axes.md.
//
//   input    images [N,C,H,W]           pixels in 0..1, which the file normalises
//   outputs  logits [N,K]
//            routing.L.experts [N,S,k]  for each route step L: what token s computes, in the order of its choices; -1
//                                       where it has fewer than k, as after drops. Where experts choose tokens, k is E
//                                       and column e is e or -1
//            routing.L.gates [N,S,k]    0 where there is no expert
//            routing.L.dispatch, routing.L.combine [N,S,P]  instead of these two, for soft routers
//   metadata classes                    their names, as a JSON array
//            probabilities              "softmax" or "sigmoid": what makes them of logits
#pragma once

#include <array>
#include <map>

#include "sparsight/engine/onnx/onnx_graph.h"
#include "sparsight/engine/onnx/onnx_routing.h"
#include "sparsight/engine/program.h"

namespace sparsight::engine {

// How experts get their tokens.
enum class OnnxExperts {
  gathered,  // each computes the rows that chose it, whose number is found out while the graph runs
  masked     // each computes all rows, times 0 where it was not chosen: for runtimes that want all shapes beforehand
};

// Passes the file's bytes to write(). Raises Error for what no ONNX file can hold.
void write_onnx(const Program& program, FunctionRef<void(const void*, size_t)> write,
                OnnxExperts experts = OnnxExperts::gathered);

// The graph in work, and the tensors of the program's values. A value has up to three forms, made of each other where
// steps ask for them. Steps may read a value in another shape than it was written in.
class OnnxExport {
 public:
  OnnxExport(const Program& program, OnnxExperts experts);

  OnnxGraph graph;
  bool gathers_rows;
  std::map<int64_t, OnnxRouting> routings;  // by number of the decision

  OnnxName rows(const Value& value) { return rows(value, value.shape.columns); }  // [N, rows, columns]
  OnnxName rows(const Value& value, int64_t columns);                             // the same numbers as rows of so many
  OnnxName map(const Value& value);  // [N, columns, height, width] of a map
  bool has_map(const Value& value) const { return maps_.contains(map_key(value)); }
  OnnxName planes(const Value& value, int64_t channels);  // [N, channels, rows / channels, columns]

  // What a step writes, in one of the forms. columns: of rows that are not as wide as the value's.
  void set_rows(const Value& value, const OnnxName& tensor) { set_rows(value, tensor, value.shape.columns); }
  void set_rows(const Value& value, const OnnxName& tensor, int64_t columns);
  void set_map(const Value& value, const OnnxName& tensor);
  void set_planes(const Value& value, int64_t channels, const OnnxName& tensor);

  const OnnxName& images();  // [1]: N

 private:
  static std::array<int64_t, 4> map_key(const Value& value) {
    return {value.number, value.shape.columns, value.shape.height, value.shape.width};
  }
  OnnxName written_rows(int64_t number);

  std::map<int64_t, Shape> written_;                        // by number of the value
  std::map<std::pair<int64_t, int64_t>, OnnxName> rows_;    // by number and columns
  std::map<std::pair<int64_t, int64_t>, OnnxName> planes_;  // by number and channels
  std::map<std::array<int64_t, 4>, OnnxName> maps_;         // by number, columns, height and width
  OnnxName images_;
};

}  // namespace sparsight::engine
