// Builds a graph of ONNX operators and writes it as a file. Operators: https://onnx.ai/onnx/operators/, version 17 of
// the standard set. Tensors are named by strings; the first dimension of most is the number of images, N, which the
// file leaves open.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sparsight/core/function_ref.h"

namespace sparsight::engine {

using OnnxName = std::string;  // of a tensor

enum class OnnxType { fp32 = 1, int8 = 3, int64 = 7, boolean = 9, fp64 = 11 };  // the numbers of TensorProto.DataType

struct OnnxAttribute {
  std::string name;
  std::variant<int64_t, float, std::vector<int64_t>> value;
};

class OnnxGraph {
 public:
  static constexpr int64_t kImages = -1;  // the dimension N

  // Names of what is added from now on begin with `scope`.
  void set_scope(const std::string& scope) { scope_ = scope; }
  OnnxName add_input(const std::string& name, const std::vector<int64_t>& dims);
  // The tensor is an output of the graph by this name.
  void add_output(const std::string& name, const OnnxName& tensor, OnnxType type, const std::vector<int64_t>& dims);
  void add_metadata(const std::string& key, const std::string& value);

  // Appends a node; returns its output, or the outputs of one with several.
  OnnxName node(const char* op, const std::vector<OnnxName>& inputs, const std::vector<OnnxAttribute>& attributes = {});
  std::vector<OnnxName> nodes(const char* op, const std::vector<OnnxName>& inputs, size_t outputs,
                              const std::vector<OnnxAttribute>& attributes);

  // Tensors with constant numbers, which are copied. Small ones that are equal are stored once.
  OnnxName constant(const std::string& name, OnnxType type, const std::vector<int64_t>& dims, const void* data);
  OnnxName floats(const std::string& name, const std::vector<float>& values, const std::vector<int64_t>& dims);
  OnnxName integers(const std::vector<int64_t>& values, const std::vector<int64_t>& dims);
  OnnxName integers(const std::vector<int64_t>& values) {
    return integers(values, {static_cast<int64_t>(values.size())});
  }
  OnnxName integer(int64_t value) { return integers({value}, {}); }
  OnnxName number(float value);
  OnnxName wide_number(double value);

  // Common nodes. A dimension of -1 is whatever is left.
  OnnxName add(const OnnxName& a, const OnnxName& b) { return node("Add", {a, b}); }
  OnnxName multiply(const OnnxName& a, const OnnxName& b) { return node("Mul", {a, b}); }
  OnnxName divide(const OnnxName& a, const OnnxName& b) { return node("Div", {a, b}); }
  OnnxName matmul(const OnnxName& a, const OnnxName& b) { return node("MatMul", {a, b}); }
  OnnxName where(const OnnxName& condition, const OnnxName& a, const OnnxName& b) {
    return node("Where", {condition, a, b});
  }
  OnnxName concat(const std::vector<OnnxName>& parts, int64_t axis) { return node("Concat", parts, {{"axis", axis}}); }
  OnnxName softmax(const OnnxName& x, int64_t axis) { return node("Softmax", {x}, {{"axis", axis}}); }
  OnnxName gather(const OnnxName& x, const OnnxName& indices, int64_t axis) {
    return node("Gather", {x, indices}, {{"axis", axis}});
  }
  OnnxName gather_elements(const OnnxName& x, const OnnxName& indices, int64_t axis) {
    return node("GatherElements", {x, indices}, {{"axis", axis}});
  }
  OnnxName cast(const OnnxName& x, OnnxType type) { return node("Cast", {x}, {{"to", static_cast<int64_t>(type)}}); }
  OnnxName reshape(const OnnxName& x, const std::vector<int64_t>& dims) { return node("Reshape", {x, integers(dims)}); }
  OnnxName transpose(const OnnxName& x, const std::vector<int64_t>& order) {
    return node("Transpose", {x}, {{"perm", order}});
  }
  OnnxName unsqueeze(const OnnxName& x, int64_t axis) { return node("Unsqueeze", {x, integers({axis})}); }
  OnnxName slice(const OnnxName& x, int64_t axis, int64_t begin, int64_t end) {
    return node("Slice", {x, integers({begin}), integers({end}), integers({axis})});
  }
  OnnxName sum(const OnnxName& x, int64_t axis, bool keeps_axis) {
    return node("ReduceSum", {x, integers({axis})}, {{"keepdims", int64_t{keeps_axis}}});
  }
  OnnxName mean(const OnnxName& x, const std::vector<int64_t>& axes, bool keeps_axes) {
    return node("ReduceMean", {x}, {{"axes", axes}, {"keepdims", int64_t{keeps_axes}}});
  }
  OnnxName shape(const OnnxName& x) { return node("Shape", {x}); }
  OnnxName zeros_like(const OnnxName& x) { return node("ConstantOfShape", {shape(x)}); }
  // The largest k along the axis, in falling order, and their indices; of equal ones the first. k: [1].
  std::pair<OnnxName, OnnxName> top_k(const OnnxName& x, const OnnxName& k, int64_t axis);
  std::pair<OnnxName, OnnxName> top_k(const OnnxName& x, int64_t k, int64_t axis) {
    return top_k(x, integers({k}), axis);
  }

  // Passes the file's bytes to write(), without the nodes and constants that no output needs. Raises Error for more
  // than a file can hold.
  void write(FunctionRef<void(const void*, size_t)> write) const;

 private:
  struct Node {
    std::string op;
    std::vector<OnnxName> inputs, outputs;
    std::vector<OnnxAttribute> attributes;
  };
  struct Constant {
    OnnxName name;
    OnnxType type;
    std::vector<int64_t> dims;
    std::string bytes;
  };
  struct Port {
    OnnxName name;
    OnnxType type;
    std::vector<int64_t> dims;
  };

  OnnxName new_name(const std::string& name);
  std::set<OnnxName> needed() const;

  std::string scope_;
  std::set<OnnxName> names_;
  std::map<std::string, int64_t> next_;  // number of a name's next repetition
  std::vector<Node> nodes_;
  std::vector<Constant> constants_;
  std::map<std::string, OnnxName> small_constants_;  // by type, dimensions and bytes
  std::vector<Port> inputs_, outputs_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

}  // namespace sparsight::engine
