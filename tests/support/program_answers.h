// The answers of a model's program (engine/program.h).
#pragma once

#include "sparsight/models/program_model.h"

namespace sparsight::test {

inline ModelOutput program_output(const ImageModel& model, const ImageShape& shape, const at::Tensor& images,
                                  const engine::WeightForm& form = {}) {
  const c10::AutoGradMode no_grad(false);
  return ProgramModel(model.compile(form), shape).forward({.images = images});
}

// For models of images [B,C,H,W].
inline at::Tensor program_logits(const ImageModel& model, const at::Tensor& images,
                                 const engine::WeightForm& form = {}) {
  return program_output(model, {images.size(1), images.size(2), images.size(3)}, images, form).logits;
}

}  // namespace sparsight::test
