// A vision transformer with random weights under attack, for benchmarks. Letters: sparsight/moe/axes.md.
#pragma once

#include <memory>

#include "bench/models/our_model.h"
#include "sparsight/attacks/attacked_image_model.h"
#include "sparsight/attacks/pgd.h"
#include "sparsight/train/algorithm.h"

namespace sparsight::bench {

class AttackedVit {
 public:
  explicit AttackedVit(const ModelCase& which);

  // One forward pass and the gradient of the cross entropy with respect to the pixels, as an attack's step needs them,
  // without anything else.
  at::Tensor input_gradient();
  // PGD of `steps` steps on the whole batch, by the library.
  void attack(int64_t steps);
  // Attacks on `targets` classes in turn (APGD-T) of `steps` steps each, on the images that are still classified
  // correctly, or on all of them until none is.
  AttackResult targeted(int64_t targets, int64_t steps, double epsilon, bool leave);

  // Algorithms that train this model with AdamW: "erm", and "pgd_training" with `steps` steps.
  std::shared_ptr<Algorithm> algorithm(const std::string& name, int64_t steps) const;
  void update(Algorithm& algorithm);

  void use_labels(const at::Tensor& labels) { batch_.labels.label = labels; }  // [B] int64
  double operations() const { return model_.operations(); }                    // of a forward pass of the batch
  int64_t images() const { return batch_.pixels.size(0); }

 private:
  OurModel model_;
  AttackedImageModel attacked_;  // of input_gradient()
  AttackBatch batch_;            // with the classes that the model gives the images
};

// Peak resident memory, in bytes for each image, of input_gradient() on `batch` images, beyond what the process has
// with the model loaded; in a process of its own.
double memory_per_image(const ModelCase& which, int64_t threads);

}  // namespace sparsight::bench
