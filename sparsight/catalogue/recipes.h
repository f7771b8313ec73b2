// Published training recipes as presets of a configuration: defaults of settings in several sections, which the
// configuration's own values override. [train] recipe chooses one.
#pragma once

#include <string>
#include <vector>

#include "sparsight/core/config.h"

namespace sparsight {

// "none", "deit", "vit", "vit_light", "mobile_vmoe"
const std::vector<std::string>& recipe_names();

// What [train] recipe of a configuration presets:
//   deit       Touvron et al. 2021, "Training data-efficient image transformers & distillation through attention": 300
//              epochs in batches of 1024, AdamW at 5e-4 * batch / 512, warm-up of 5 epochs from 1e-6, cosine to 1e-5
//              over the whole training, changed once per epoch, RandAugment, erasing, mixup, CutMix, three views of an
//              image
//   vit        Dosovitskiy et al. 2021, ImageNet-1k: 300 epochs in batches of 4096, AdamW at 3e-3, warm-up of 10,000
//              steps (at most 10.7 % of the training), cosine to 0, decay 0.3, dropout 0.1, clipping to norm 1
//   vit_light  the same with decay 0.1, a rate of 1e-3 and no dropout, for narrow models (about the "light" setting of
//              Steiner et al. 2022, "How to train your ViT?")
//   mobile_vmoe  Daxberger et al. 2023 ("Mobile V-MoEs"), section 4: `deit` for widths from 192 on, `vit` for narrower
//              models
// What depends on other settings follows those of the configuration: the rate of `deit` the batch (times accumulated
// batches), rates at the start and end of its schedule the rate of the optimiser. Sizes and statistics of images follow
// the data (data/transforms/fit_to_data.h). An unknown recipe presets nothing.
Preset recipe_preset(const Json& tree);

}  // namespace sparsight
