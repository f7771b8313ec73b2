// The confusion graph as a picture.
#pragma once

#include <string>

#include "sparsight/analysis/superclasses/found_superclasses.h"

namespace sparsight {

// An SVG file: the classes on a circle, those of a super-class beside each other in its colour, and for each class the
// edges to the two that it is confused with most (A of confusion_affinity); wider is more often. Edges within a
// super-class have its colour, others are grey.
std::string confusion_graph_svg(const FoundSuperclasses& found);

}  // namespace sparsight
