#include "sparsight/engine/onnx/onnx_graph.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "sparsight/core/error.h"
#include "sparsight/engine/onnx/proto_message.h"

namespace sparsight::engine {
namespace {

static_assert(std::endian::native == std::endian::little, "the numbers of ONNX files are little-endian");

constexpr int64_t kIrVersion = 8, kOperatorSet = 17;
constexpr size_t kSmallConstant = 256;  // bytes

int64_t bytes_of_number(OnnxType type) {
  if (type == OnnxType::int8 || type == OnnxType::boolean) return 1;
  return type == OnnxType::fp32 ? 4 : 8;
}

// The fields are numbered in onnx/onnx.proto, from which their names in the comments are.
ProtoMessage attribute_message(const OnnxAttribute& attribute) {
  constexpr int64_t kFloat = 1, kInt = 2, kInts = 7;  // AttributeProto.AttributeType
  ProtoMessage message;
  message.text(1, attribute.name);
  if (const auto* real = std::get_if<float>(&attribute.value)) {
    message.real(2, *real);  // f
    message.number(20, kFloat);
  } else if (const auto* number = std::get_if<int64_t>(&attribute.value)) {
    message.number(3, *number);  // i
    message.number(20, kInt);
  } else {
    for (const int64_t each : std::get<std::vector<int64_t>>(attribute.value)) message.number(8, each);  // ints
    message.number(20, kInts);
  }
  return message;
}

ProtoMessage port_message(const std::string& name, OnnxType type, const std::vector<int64_t>& dims) {
  ProtoMessage shape, tensor, of_type, port;
  for (const int64_t side : dims) {
    ProtoMessage dim;
    if (side == OnnxGraph::kImages)
      dim.text(2, "N");  // dim_param
    else
      dim.number(1, side);  // dim_value
    shape.message(1, dim);
  }
  tensor.number(1, static_cast<int64_t>(type));  // elem_type
  tensor.message(2, shape);
  of_type.message(1, tensor);  // tensor_type
  port.text(1, name);
  port.message(2, of_type);
  return port;
}

}  // namespace

OnnxName OnnxGraph::new_name(const std::string& name) {
  OnnxName whole = scope_ + name;
  while (!names_.insert(whole).second) whole = cat(scope_, name, "_", ++next_[scope_ + name]);
  return whole;
}

OnnxName OnnxGraph::add_input(const std::string& name, const std::vector<int64_t>& dims) {
  names_.insert(name);
  inputs_.push_back({name, OnnxType::fp32, dims});
  return name;
}

void OnnxGraph::add_output(const std::string& name, const OnnxName& tensor, OnnxType type,
                           const std::vector<int64_t>& dims) {
  if (!names_.insert(name).second)
    fail("the model has two outputs named ", name, ", but an ONNX file needs a name for each; rename a layer");
  nodes_.push_back({"Identity", {tensor}, {name}, {}});
  outputs_.push_back({name, type, dims});
}

void OnnxGraph::add_metadata(const std::string& key, const std::string& value) { metadata_.emplace_back(key, value); }

OnnxName OnnxGraph::node(const char* op, const std::vector<OnnxName>& inputs,
                         const std::vector<OnnxAttribute>& attributes) {
  return nodes(op, inputs, 1, attributes).front();
}

std::vector<OnnxName> OnnxGraph::nodes(const char* op, const std::vector<OnnxName>& inputs, size_t outputs,
                                       const std::vector<OnnxAttribute>& attributes) {
  std::vector<OnnxName> names;
  for (size_t i = 0; i < outputs; ++i) names.push_back(new_name(op));
  nodes_.push_back({op, inputs, names, attributes});
  return names;
}

OnnxName OnnxGraph::constant(const std::string& name, OnnxType type, const std::vector<int64_t>& dims,
                             const void* data) {
  int64_t numbers = 1;
  std::string key = cat(static_cast<int>(type));
  for (const int64_t side : dims) numbers *= side, key += cat(",", side);
  std::string bytes(static_cast<const char*>(data), static_cast<size_t>(numbers * bytes_of_number(type)));
  const bool small = bytes.size() <= kSmallConstant;
  if (small) {
    key += ":" + bytes;
    if (const auto found = small_constants_.find(key); found != small_constants_.end()) return found->second;
  }
  OnnxName whole = new_name(name);
  if (small) small_constants_[key] = whole;
  constants_.push_back({whole, type, dims, std::move(bytes)});
  return whole;
}

OnnxName OnnxGraph::floats(const std::string& name, const std::vector<float>& values,
                           const std::vector<int64_t>& dims) {
  int64_t numbers = 1;
  for (const int64_t side : dims) numbers *= side;
  SPARSIGHT_CHECK(numbers == static_cast<int64_t>(values.size()));
  return constant(name, OnnxType::fp32, dims, values.data());
}

OnnxName OnnxGraph::integers(const std::vector<int64_t>& values, const std::vector<int64_t>& dims) {
  return constant("integers", OnnxType::int64, dims, values.data());
}

OnnxName OnnxGraph::number(float value) { return constant("number", OnnxType::fp32, {}, &value); }

OnnxName OnnxGraph::wide_number(double value) { return constant("wide_number", OnnxType::fp64, {}, &value); }

std::pair<OnnxName, OnnxName> OnnxGraph::top_k(const OnnxName& x, const OnnxName& k, int64_t axis) {
  const std::vector<OnnxName> both = nodes("TopK", {x, k}, 2, {{"axis", axis}});
  return {both[0], both[1]};
}

std::set<OnnxName> OnnxGraph::needed() const {
  std::set<OnnxName> all;
  for (const Port& output : outputs_) all.insert(output.name);
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node)
    if (std::ranges::any_of(node->outputs, [&](const OnnxName& name) { return all.contains(name); }))
      all.insert(node->inputs.begin(), node->inputs.end());
  return all;
}

void OnnxGraph::write(FunctionRef<void(const void*, size_t)> write) const {
  const std::set<OnnxName> used = needed();
  ProtoMessage graph;
  for (const Node& node : nodes_) {
    if (std::ranges::none_of(node.outputs, [&](const OnnxName& name) { return used.contains(name); })) continue;
    ProtoMessage message;
    for (const OnnxName& name : node.inputs) message.text(1, name);
    for (const OnnxName& name : node.outputs) message.text(2, name);
    message.text(3, node.outputs.front());  // name
    message.text(4, node.op);
    for (const OnnxAttribute& attribute : node.attributes) message.message(5, attribute_message(attribute));
    graph.message(1, message);
  }
  graph.text(2, "sparsight");  // name
  for (const Port& port : inputs_) graph.message(11, port_message(port.name, port.type, port.dims));
  for (const Port& port : outputs_) graph.message(12, port_message(port.name, port.type, port.dims));

  // The constants' numbers follow without being copied: what stands before those of each.
  std::vector<std::pair<std::string, const Constant*>> tensors;
  uint64_t bytes = graph.bytes().size();
  for (const Constant& each : constants_) {
    if (!used.contains(each.name)) continue;
    ProtoMessage tensor, start;
    for (const int64_t side : each.dims) tensor.number(1, side);
    tensor.number(2, static_cast<int64_t>(each.type));
    tensor.text(8, each.name);
    tensor.length(9, each.bytes.size());                         // raw_data
    start.length(5, tensor.bytes().size() + each.bytes.size());  // initializer
    tensors.emplace_back(start.bytes() + tensor.bytes(), &each);
    bytes += tensors.back().first.size() + each.bytes.size();
  }
  if (bytes > static_cast<uint64_t>(std::numeric_limits<int32_t>::max()))
    fail("the model takes ", bytes >> 20,
         " MiB, but an ONNX file holds 2047 MiB; export a smaller model, or with --format sparsight");
  ProtoMessage model, operators;
  operators.text(1, "");  // domain
  operators.number(2, kOperatorSet);
  model.number(1, kIrVersion);
  model.text(2, "sparsight");   // producer_name
  model.message(8, operators);  // opset_import
  for (const auto& [key, value] : metadata_) {
    ProtoMessage entry;
    entry.text(1, key);
    entry.text(2, value);
    model.message(14, entry);  // metadata_props
  }
  model.length(7, bytes);  // graph
  write(model.bytes().data(), model.bytes().size());
  write(graph.bytes().data(), graph.bytes().size());
  for (const auto& [start, constant] : tensors) {
    write(start.data(), start.size());
    write(constant->bytes.data(), constant->bytes.size());
  }
}

}  // namespace sparsight::engine
