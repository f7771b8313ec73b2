// A model's routings as a file, to replay them: the same experts and gates for other pixels, or fixed while something
// else is studied. One safetensors file; tensors of a layer are "<layer>/<field>" with the fields of
// Routing (moe/routing.h). routing_record.h adds what is recorded of images. Letters: moe/axes.md.
#pragma once

#include <string>

#include "sparsight/models/routings.h"

namespace sparsight {

void write_routings(const std::string& path, const Routings& routings);
// Raises Error for any other file, and for inconsistent routings: indices out of range, shapes that do not match, gates
// that are not finite.
Routings read_routings(const std::string& path);

// The routings in `path` for `images` images; none for the path "". Raises Error where they are for another number of
// images; `counted` ends the message: "the split has 64".
RoutingReplay read_replay(const std::string& path, int64_t images, const std::string& counted);

}  // namespace sparsight
