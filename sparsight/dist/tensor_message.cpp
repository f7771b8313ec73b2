#include "sparsight/dist/tensor_message.h"

#include <torch/csrc/jit/serialization/pickle.h>

#include <nlohmann/json.hpp>

namespace sparsight::dist {

int64_t TensorMessage::add(const at::Tensor& tensor) {
  if (!tensor.defined()) return -1;
  tensors_.push_back(tensor.detach().contiguous());
  return static_cast<int64_t>(tensors_.size()) - 1;
}

at::Tensor TensorMessage::get(const Json& number) const {
  const auto i = number.get<int64_t>();
  return i < 0 ? at::Tensor() : tensors_.at(static_cast<size_t>(i));
}

std::string TensorMessage::bytes() const {
  const std::vector<char> pickled = torch::jit::pickle_save(c10::IValue(tensors_));
  const std::vector<uint8_t> packed =
      Json::to_msgpack({{"json", json}, {"tensors", Json::binary({pickled.begin(), pickled.end()})}});
  return {packed.begin(), packed.end()};
}

TensorMessage TensorMessage::from_bytes(const std::string& bytes) {
  Json packed = Json::from_msgpack(bytes.begin(), bytes.end());
  const auto& pickled = packed.at("tensors").get_binary();
  TensorMessage message;
  message.json = std::move(packed.at("json"));
  message.tensors_ = torch::jit::pickle_load({pickled.begin(), pickled.end()}).toTensorVector();
  return message;
}

}  // namespace sparsight::dist
