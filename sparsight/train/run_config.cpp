#include "sparsight/train/run_config.h"

#include "sparsight/catalogue/model_sections.h"
#include "sparsight/optim/optimizer.h"
#include "sparsight/optim/schedule.h"

namespace sparsight {

const std::vector<Section>& config_sections() {
  static const std::vector<Section> sections = [] {
    std::vector<Section> list = model_sections();
    list.push_back(named_section("optimizer", "how parameters follow their gradients", "adamw", optimizers()));
    list.push_back(named_section("schedule", "how the learning rate changes", "cosine", schedules()));
    return list;
  }();
  return sections;
}

}  // namespace sparsight
