// Decisions of a model's routers as a file, for replaying them: the same experts and gates for other pixels, or frozen
// while something else is studied. One safetensors file; tensors of a layer are "<layer>/<field>" with the fields of
// Routing (moe/routing.h). Letters: moe/axes.md.
#pragma once

#include <string>

#include "sparsight/models/routings.h"

namespace sparsight {

void write_routings(const std::string& path, const Routings& routings);
// Raises Error for a file that is none, or whose decisions are not consistent: indices out of range, shapes that do not
// fit each other, gates that are not finite.
Routings read_routings(const std::string& path);

// The decisions in `path` about `images` images, or none for the path "". Raises Error where they are about another
// number of images; `counted` says which were counted: "the split has 64".
RoutingReplay read_replay(const std::string& path, int64_t images, const std::string& counted);

}  // namespace sparsight
