#include "sparsight/train/run_config.h"

#include "sparsight/catalogue/dist_options.h"
#include "sparsight/catalogue/model_sections.h"
#include "sparsight/catalogue/superclass_options.h"
#include "sparsight/optim/optimizer.h"
#include "sparsight/optim/schedule.h"
#include "sparsight/train/algorithm.h"

namespace sparsight {

std::vector<Section> config_sections() {
  std::vector<Section> sections = model_sections();
  sections.push_back(plain_section<SuperclassOptions>(
      "superclasses", "the division of the classes into super-classes, which guide routers"));
  sections.push_back(
      named_section("algorithm", "the training algorithm: how minibatches update the weights", "erm", algorithms()));
  sections.push_back(named_section("optimizer", "the optimiser", "adamw", optimizers()));
  sections.push_back(named_section("schedule", "the learning rate schedule", "cosine", schedules()));
  sections.push_back(plain_section<DistOptions>("dist", "how the processes that train a model share it out"));
  return sections;
}

}  // namespace sparsight
