// Whether the experts that an attack switches to compute much the same: of the tokens whose experts changed, the
// relative distance ||y(S) - y(S')|| / ||y(S)|| of the layer's output on the same input, with the clean routing S and
// the attacked one S', against as many experts at random. It tests the explanation that Puigcerver et al. 2022 give for
// a routing that changes a lot while predictions do not. Letters: moe/axes.md.
#pragma once

#include <map>
#include <string>

#include "sparsight/models/image_model.h"
#include "sparsight/models/routings.h"
#include "sparsight/moe/moe_layer.h"

namespace sparsight {

struct OutputRedundancy {
  int64_t tokens = 0;   // whose kept experts changed, and whose output with the clean routing is not 0
  double attacked = 0;  // mean distance over these tokens, with the attacked routing
  double random = 0;    // with the attacked routing's gates, but experts at random
};

// Replaces each token's experts by as many distinct ones, uniformly at random. Gates, ranks and drops stay.
// Raises Error unless the routing chooses per token.
Routing with_random_experts(const Routing& routing, uint64_t seed);

// input: the tokens of the clean images. Both routings are applied to them.
OutputRedundancy output_redundancy(MoeLayer& layer, const MoeInput& input, const Routing& clean,
                                   const Routing& attacked, uint64_t seed);

// The redundancy of each MoE layer of a model, by path, in one pass over the clean images. attacked: the routings of
// the attacked images (to_routings), for the same images in the same order. Soft layers are left out.
std::map<std::string, OutputRedundancy> output_redundancy(ImageModel& model, const ModelInput& clean,
                                                          const Routings& attacked, uint64_t seed);

}  // namespace sparsight
