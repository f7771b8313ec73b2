// Holds what a router returned to what moe/routing.h says, once, before anything computes with it: a router that counts
// wrong gets an error that says so, and nothing reads or writes where it must not. Letters: moe/axes.md.
//
// One pass over the assignments and no new tensor. Values are looked at on the CPU only: on a device that would wait
// for it, and its kernels check their indices themselves.
#pragma once

#include <functional>
#include <vector>

#include "sparsight/core/error.h"
#include "sparsight/moe/routing.h"
#include "sparsight/moe/soft_routing.h"

namespace sparsight {

// What is wrong with a routing. Router::route adds which router of which layer made it.
class InvalidRouting : public Error {
 public:
  using Error::Error;
};

// What the router was asked.
struct RoutingRequest {
  at::Tensor tokens;                                 // [N,D]
  int64_t experts = 0;                               // E; 0: whatever the routing says
  std::function<std::vector<at::Tensor>()> weights;  // of the router
};

// Whether token, expert, rank, gate and kept have one entry of the right type for each assignment, and all experts
// exist: what finish_routing() computes with. Raises InvalidRouting.
void check_assignments(const Routing& routing);

// The same, and all other fields: their shapes and types, finish_routing() called, tokens within bounds, assignments in
// order and none twice, groups that hold what is kept, gates finite wherever tokens, weights and logits are. Raises
// InvalidRouting.
void validate_routing(const Routing& routing, const RoutingRequest& request);

// Shapes and types of a soft router's answer. Raises InvalidRouting.
void validate_routing(const SoftRouting& routing, const RoutingRequest& request);

}  // namespace sparsight
