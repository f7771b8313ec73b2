// The models of `sparsight dg`, by name.
#pragma once

#include <string>
#include <vector>

#include "sparsight/dg/protocol_defaults.h"

namespace sparsight {

// Settings of a configuration, and what the model's authors have in place of DomainBed's defaults.
struct DgModel {
  std::string name, summary;
  std::vector<std::string> settings;  // "section.key=value"
  std::vector<ProtocolDefault> defaults = {};
};
const std::vector<DgModel>& dg_models();

}  // namespace sparsight
