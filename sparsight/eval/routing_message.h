// Routings in messages to other ranks.
#pragma once

#include "sparsight/dist/tensor_message.h"
#include "sparsight/moe/routing.h"
#include "sparsight/moe/soft_routing.h"

namespace sparsight {

// A decision without its losses, detached, as JSON whose tensors are added to the message.
Json to_json(const Routing& routing, dist::TensorMessage& message);
Routing routing_from(const Json& json, const dist::TensorMessage& message);

Json to_json(const SoftRouting& routing, dist::TensorMessage& message);
SoftRouting soft_routing_from(const Json& json, const dist::TensorMessage& message);

}  // namespace sparsight
