// Reads the state dicts that PyTorch's torch.save writes (.pt, .pth), without Python and without running anything in
// them. torch's own torch::jit::pickle_load does not read an OrderedDict of weights and overflows the stack on a
// hostile file, so only its archive reader is used here.
#pragma once

#include <string>

#include "sparsight/io/safetensors.h"

namespace sparsight {

// Whether the file begins as those that torch.save writes, whatever its name. Raises Error if it cannot be read.
bool is_torch_pickle(const std::string& path);

// The tensors of the state dict, on the CPU, in the file's order. A dict that holds it under "state_dict", "model" or
// another usual key is opened; "module." (of data-parallel training) and "_orig_mod." (of torch.compile) in front of
// all names are removed. Other numbers and strings are ignored. Raises Error for whole pickled modules,
// TorchScript programs, the format of PyTorch before 1.6, and damaged files.
NamedTensors read_torch_pickle(const std::string& path);

}  // namespace sparsight
