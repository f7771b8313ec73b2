// The attacks of `sparsight attack` on a model that Python has. An attack runs in the thread that calls the operator;
// for each pass it calls a function there, which takes the pixels from attacked_pixels() and gives logits to
// answer_attack().
#pragma once

#include "python/csrc/operators.h"

namespace sparsight::python {

// Defines
//   attack(str request, Tensor pixels, Tensor labels, Tensor? targets=None) -> (Tensor pixels, Tensor clean, Tensor
//     robust, Tensor stage, Tensor target, str report)
// pixels: [B,...] in 0..1, fp32 or fp64; labels: [B] int64. request: a JSON object with attack, norm, epsilon, settings
// ({"steps": 20}), target ("", "3", "least_likely" or "random"), seed, batch, randomised (two passes of an image may
// differ) and progress (shows a bar). targets: [B] int64, a target of each image instead. Returns what CascadeResult
// (attacks/cascade.h) says, with target [0] of an untargeted attack, and the report as JSON. Raises ValueError for a
// request that makes no sense.
void define_attack_operators(torch::Library& m);

}  // namespace sparsight::python

using sparsight_pass = int (*)();
// Sets the function for the passes of attacks in this thread, or null, and returns the one before. It returns 0 if it
// called answer_attack(). Called through ctypes, so that no operator takes an address.
extern "C" __attribute__((visibility("default"))) sparsight_pass sparsight_set_attacked_model(sparsight_pass pass);
