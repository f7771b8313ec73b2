// What `sparsight attack --transfer-from` says on a terminal.
#pragma once

#include <string>

#include "sparsight/core/options.h"

namespace sparsight {

// From transfer.json (docs/attacks.md): a row for each of the two models, and how the routing of the evaluated one
// changed. Ends with a newline.
std::string transfer_text(const Json& result);

}  // namespace sparsight
