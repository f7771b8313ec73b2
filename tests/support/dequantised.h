// A program in int8 as one in fp32: what its weights stand for, without the rounding of what they are multiplied with.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/support/frozen.h"

namespace sparsight::test {

// The numbers of an int8 matrix. Outputs are the rows of linear layers ("weight"), the columns of experts.
inline std::vector<float> dequantised_numbers(const Bytes& stored, const std::vector<float>& scale,
                                              const engine::FrozenTensor& tensor) {
  const bool by_row = tensor.name.ends_with("weight");
  std::vector<float> values(stored.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t columns = static_cast<size_t>(tensor.shape[1]), output = by_row ? i / columns : i % columns;
    values[i] = scale[output] * static_cast<float>(static_cast<int8_t>(stored[i]));
  }
  return values;
}

inline engine::Program dequantised(const engine::Program& program) {
  const std::string file = frozen_bytes(program);
  const auto source = engine::bytes_in_memory(byte_view(file), "program");
  const engine::FrozenHeader from = engine::read_header(*source);
  std::map<std::string, engine::FrozenTensor> by_name;
  for (const engine::FrozenTensor& tensor : from.tensors) by_name[tensor.name] = tensor;
  std::vector<engine::NewTensor> tensors;
  for (engine::FrozenTensor tensor : from.tensors) {
    if (tensor.name.ends_with("_scale") && by_name.contains(tensor.name.substr(0, tensor.name.size() - 6))) continue;
    Bytes bytes = engine::read_tensor(*source, tensor);
    if (tensor.type == WeightType::int8) {
      const std::vector<float> scale = engine::read_floats(*source, by_name.at(tensor.name + "_scale"));
      const std::vector<float> values = dequantised_numbers(bytes, scale, tensor);
      bytes.resize(values.size() * sizeof(float));
      std::memcpy(bytes.data(), values.data(), bytes.size());
      tensor.type = WeightType::fp32;
    }
    tensors.push_back({std::move(tensor), std::move(bytes)});
  }
  std::string out;
  engine::write_frozen(from.program, from.provenance, std::move(tensors),
                       [&](const void* data, size_t size) { out.append(static_cast<const char*>(data), size); });
  return read_frozen(out);
}

}  // namespace sparsight::test
