#include "sparsight/train/run_config.h"

#include "sparsight/train/optim/optimizer.h"
#include "sparsight/train/schedule.h"
#include "sparsight/train/train_options.h"

namespace sparsight {

const std::vector<Section>& config_sections() {
  static const std::vector<Section> sections{
      plain_section<RunOptions>("run", "seed and threads"),
      plain_section<TrainOptions>("train", "length, evaluation, checkpoints and safety of training"),
      named_section("optimizer", "how parameters follow their gradients", "adamw", optimizers()),
      named_section("schedule", "how the learning rate changes", "cosine", schedules()),
  };
  return sections;
}

}  // namespace sparsight
