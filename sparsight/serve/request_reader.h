// The JSON text of an inference request: tensors go straight into arrays, the rest is a small value. A text takes about
// twice its length of memory, however hostile it is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"

namespace sparsight::serve {

// The "data" of an entry of "inputs", flat or in nested lists.
struct TensorData {
  std::vector<float> numbers;
  std::vector<std::string> texts;
};

struct RequestText {
  Json root;  // an object; "data" of inputs[i] is a number: where it is in `data`
  std::vector<TensorData> data;
};

// Raises HttpError: 400 for what is no JSON object, has a key twice in one object, nests too deep or has far more
// values than a request needs; 413 for more than `max_numbers` numbers in a tensor.
RequestText read_request(std::string_view text, int64_t max_numbers);

}  // namespace sparsight::serve
