// Found super-classes as text for a terminal.
#pragma once

#include <string>

#include "sparsight/analysis/superclasses/found_superclasses.h"

namespace sparsight {

// For each super-class its size, the share of its confusions that stay inside, its classes and its largest confusions;
// then the measures of the whole division.
std::string superclass_report(const FoundSuperclasses& found);

}  // namespace sparsight
