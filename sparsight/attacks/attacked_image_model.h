// One of the library's models under attack. Normalisation is part of the model, so an attack sees pixels. Models
// without routers, whose images do not influence each other, are data parallel over threads where gradients are needed.
#pragma once

#include <memory>

#include "sparsight/attacks/attacked_model.h"
#include "sparsight/models/program_model.h"
#include "sparsight/ops/packed_cache.h"

namespace sparsight {

struct AttackedModelOptions {
  ForwardMode mode = {};  // noise, capacity, choices and losses may be those of training
  uint64_t seed = 0;      // of router noise
  PixelRange range = {};  // of the pixels that the attack changes; they are mapped to the model's 0..1
  // Answers passes without gradients in the model's place, where it can (ProgramModel::takes); or null.
  std::shared_ptr<const ProgramModel> program = {};
  bool only_program = false;  // its weights are not the model's: other passes are refused
};

class AttackedImageModel : public AttackedModel {
 public:
  // Raises UsageError for a mode with dropout, drop path or batch statistics: these would attack a smaller model, or
  // change the model.
  explicit AttackedImageModel(std::shared_ptr<ImageModel> model, const AttackedModelOptions& options = {});

  // Before the first pass: whether its routers may sample in this mode; then whether they did.
  bool randomised() const override { return randomised_; }
  ImageCoupling coupling() const override { return coupling_; }

 protected:
  ModelOutput run(const at::Tensor& pixels, const AttackPass& pass) override;

 private:
  std::shared_ptr<ImageModel> model_;
  AttackedModelOptions options_;
  ImageCoupling coupling_;
  PackedCache packed_;
  bool has_routers_ = false, randomised_ = false, passed_ = false;
};

}  // namespace sparsight
