#include "sparsight/train/run_config.h"

#include "sparsight/catalogue/model_sections.h"
#include "sparsight/optim/optimizer.h"
#include "sparsight/optim/schedule.h"
#include "sparsight/train/algorithm.h"

namespace sparsight {

std::vector<Section> config_sections() {
  std::vector<Section> sections = model_sections();
  sections.push_back(named_section("algorithm", "how weights follow from minibatches", "erm", algorithms()));
  sections.push_back(named_section("optimizer", "how parameters follow their gradients", "adamw", optimizers()));
  sections.push_back(named_section("schedule", "how the learning rate changes", "cosine", schedules()));
  return sections;
}

}  // namespace sparsight
