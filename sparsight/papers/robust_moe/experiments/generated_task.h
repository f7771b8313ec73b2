// A classification task that takes seconds: ten classes, each with a prototype of 8 x 8 pixels in U(0,1); an image is
// clip(0.5 + 0.16 (prototype - 0.5) + 0.10 N(0,1), 0, 1). And the training of a TokenMixer on it.
#pragma once

#include "sparsight/data/sample.h"
#include "sparsight/papers/robust_moe/experiments/token_mixer.h"

namespace sparsight::robust_moe {

// `count` images that follow from (seed, purpose, step): of "train" and of "test". The prototypes follow from the seed.
Batch generated_images(uint64_t seed, const std::string& purpose, uint64_t step, int64_t count);

struct GeneratedTraining {
  int64_t steps = 400, adversarial_steps = 150, batch = 128;
};

// AdamW with a learning rate of 3e-3, 30 steps of warm-up and linear decay, weight decay 0.01, on new images in each
// step. If `adversarial`, then further steps at 1.5e-3 on images under PGD of 10 steps, epsilon 8/255, with the
// algorithm pgd_training.
std::shared_ptr<TokenMixer> train_on_generated(int64_t experts, bool adversarial, uint64_t seed,
                                               const GeneratedTraining& training);

}  // namespace sparsight::robust_moe
