// Decisions of a model's routers as a file, for replaying them: the same experts and gates for other pixels, or frozen
// while something else is studied. One safetensors file; tensors of a layer are "<layer>/<field>" with the fields of
// Routing (moe/routing.h). Letters: moe/axes.md.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sparsight/models/model_output.h"

namespace sparsight {

// By layer, as ModelInput::routings.
using Routings = std::map<std::string, Routing>;

// All decisions of a pass, detached.
Routings routings_of(const ModelOutput& output);

// The decisions of one layer about several batches as one, in their order. Raises Error where they are not of the same
// kind and sizes.
Routing joined(const std::vector<Routing>& parts);

// The decision about some of its images, image: [B'] int64 positions in the layout. Raises Error for positions beyond
// the routing's images.
Routing of_images(const Routing& routing, const at::Tensor& image);
Routings of_images(const Routings& routings, const at::Tensor& image);

void write_routings(const std::string& path, const Routings& routings);
// Raises Error for a file that is none, or whose decisions are not consistent: indices out of range, shapes that do not
// fit each other, gates that are not finite.
Routings read_routings(const std::string& path);

}  // namespace sparsight
