// Safetensors files whose tensors are not all in memory at the same time: they are made one by one as they are written,
// and cut as they are read.
#pragma once

#include <functional>
#include <string>

#include "sparsight/io/atomic_file.h"
#include "sparsight/io/safetensors.h"

namespace sparsight {

// The values of tensor `i` of a file. It is called twice for each tensor.
using TensorSource = std::function<at::Tensor(size_t i)>;
// As write_safetensors() without a source, which gives the values. The tensors of `file` may be without any (of the
// device "meta"): their types and shapes count.
void write_safetensors(const std::string& path, const TensorFile& file, const TensorSource& source,
                       Existing existing = Existing::replace);

// What is kept of a tensor that was read.
using TensorCut = std::function<at::Tensor(const std::string& name, const at::Tensor& tensor)>;
// As read_safetensors() without `cut`, which is called with each wanted tensor before the next one is read.
TensorFile read_safetensors(const std::string& path, const std::function<bool(const std::string&)>& wanted,
                            const TensorCut& cut);

}  // namespace sparsight
