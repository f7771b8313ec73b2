// The engines that a run or a folder of jobs began with. A process that goes on with it computes on the same ones,
// whatever a measurement on this machine would choose today, so that the run ends with the bits of an unbroken one.
#pragma once

#include <optional>
#include <string>

#include "sparsight/core/engines.h"

namespace sparsight {

// While it lives, the calling thread computes on the engines that env_file (env.json of a folder) names. Says in the
// log where that changes the choice, and warns of what it cannot keep: engines that SPARSIGHT_ENGINES or SPARSIGHT_ISA
// override or that this build lacks, and another instruction-set level. A file that is missing, damaged, or of a
// version that did not record engines changes nothing.
class RecordedEngineScope {
 public:
  explicit RecordedEngineScope(const std::string& env_file);

 private:
  std::optional<EngineScope> scope_;
};

}  // namespace sparsight
