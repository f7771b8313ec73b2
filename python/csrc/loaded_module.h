// A trained model of the library for Python: torch.classes.sparsight.LoadedModule.
#pragma once

#include <torch/custom_class.h>
#include <torch/library.h>

namespace sparsight::python {

// Defines the class, whose methods take and return:
//   LoadedModule(str path, str checkpoint, str[] overrides, str labels, str normalize)
//     Raises ValueError and RuntimeError as `sparsight predict` does, and for a frozen model.
//   info() -> str: JSON {"path", "step", "weights", "classes", "image": [C, H, W], "config", "parameters": their
//   number} names() -> str[], tensors() -> Tensor[]: parameters, then buffers; the tensors are the model's own
//   forward(Tensor images, bool training, int seed, int step) -> (Tensor logits, Tensor loss)
//     images: [B,C,H,W] pixels in 0..1. loss: the weighted sum of the routers' balance losses in training, else 0.
//   preprocess(Tensor image) -> Tensor: uint8 [C,H,W] to pixels in 0..1 of the model's size, by its evaluation
//   transforms
void define_loaded_module(torch::Library& m);

}  // namespace sparsight::python
