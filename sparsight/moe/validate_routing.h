// Checks a router's output against moe/routing.h before anything uses it, so that a bug in a router is a clear error
// and not an out-of-bounds access. Letters: moe/axes.md.
//
// One pass over the assignments, no new tensor. Values are checked on the CPU only: on a device it would need a
// synchronisation, and its kernels check their indices.
#pragma once

#include <functional>
#include <vector>

#include "sparsight/core/error.h"
#include "sparsight/moe/routing.h"
#include "sparsight/moe/soft_routing.h"

namespace sparsight {

// The error in a routing. Router::route adds the names of the router and the layer.
class InvalidRouting : public Error {
 public:
  using Error::Error;
};

// What the routing is checked against.
struct RoutingRequest {
  at::Tensor tokens;                                 // [N,D]
  int64_t experts = 0;                               // E; 0: any
  std::function<std::vector<at::Tensor>()> weights;  // of the router
};

// Whether tokens, the router's weights and the routing's logits are finite: if so, NaN or infinity in what follows from
// them is a bug in the router. On a device it needs a synchronisation.
bool has_finite_inputs(const Routing& routing, const RoutingRequest& request);

// Checks that token, expert, rank, gate and kept have one entry of the right dtype per assignment and that all experts
// exist, which finish_routing() relies on. Raises InvalidRouting.
void check_assignments(const Routing& routing);

// Also checks all other fields, and the first level of a two-level routing: shapes, dtypes and devices,
// finish_routing() called, tokens within bounds, assignments sorted and distinct, order and offsets those of the kept
// assignments, gates finite if tokens, weights and logits are. Raises InvalidRouting.
void validate_routing(const Routing& routing, const RoutingRequest& request);

// Checks shapes and dtypes of a soft routing, and that weights are finite if tokens, logits and the router's weights
// are. Raises InvalidRouting.
void validate_routing(const SoftRouting& routing, const RoutingRequest& request);

}  // namespace sparsight
