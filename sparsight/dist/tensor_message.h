// What ranks tell each other: JSON, and tensors to which it refers by their numbers.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/core/options.h"

namespace sparsight::dist {

class TensorMessage {
 public:
  Json json = Json::object();

  // Returns the tensor's number, or -1 if it is undefined.
  int64_t add(const at::Tensor& tensor);
  // The tensor of a number that add() returned.
  at::Tensor get(const Json& number) const;

  // Every bit is kept, those of numbers in JSON too.
  std::string bytes() const;
  static TensorMessage from_bytes(const std::string& bytes);

 private:
  std::vector<at::Tensor> tensors_;
};

}  // namespace sparsight::dist
