#include "sparsight/models/routings.h"

#include <torch/types.h>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/moe/finish_routing.h"

namespace sparsight {
namespace {

void check_alike(const Routing& a, const Routing& b) {
  const bool alike = a.layer == b.layer && a.experts == b.experts && a.layout.per_image == b.layout.per_image &&
                     a.per_token == b.per_token && !a.soft == !b.soft && (!a.soft || a.soft->slots == b.soft->slots);
  if (!alike)
    fail("cannot concatenate routings of ", printable(a.layer), " and ", printable(b.layer),
         ": layer, experts, tokens per image, choices per token and slots must be the same");
}

// Leaves out the fields that only the original pass needs.
Routing replayable(const Routing& from) {
  Routing r;
  r.layer = from.layer;
  r.layout = from.layout;
  r.tokens = from.tokens;
  r.experts = from.experts;
  r.per_token = from.per_token;
  return r;
}

std::shared_ptr<const SoftRouting> make_soft_routing(
    const SoftRouting& like, const Routing& r, const std::function<at::Tensor(at::Tensor SoftRouting::*)>& tensor) {
  SoftRouting soft;
  soft.layer = r.layer;
  soft.layout = r.layout;
  soft.experts = like.experts;
  soft.slots = like.slots;
  for (const auto& [name, field] : soft_fields()) soft.*field = tensor(field);
  return std::make_shared<const SoftRouting>(std::move(soft));
}

// The routings of one layer for several batches, concatenated.
Routing joined(const std::vector<Routing>& parts) {
  SPARSIGHT_CHECK(!parts.empty());
  Routing r = replayable(parts.front());
  std::vector<int64_t> first;  // first token of each part
  r.tokens = r.layout.images = 0;
  for (const Routing& part : parts) {
    check_alike(parts.front(), part);
    first.push_back(r.tokens);
    r.tokens += part.tokens;
    r.layout.images += part.layout.images;
  }
  if (parts.front().soft) {
    r.soft = make_soft_routing(*parts.front().soft, r, [&](at::Tensor SoftRouting::*field) {
      std::vector<at::Tensor> all;
      for (const Routing& part : parts) all.push_back((*part.soft.*field).detach());
      return at::cat(all);
    });
    return r;
  }
  for (const auto& [name, field] : choice_fields()) {
    std::vector<at::Tensor> all;
    for (size_t i = 0; i < parts.size(); ++i) {
      const at::Tensor values = (parts[i].*field).detach();
      all.push_back(field == &Routing::token ? values + first[i] : values);
    }
    r.*field = at::cat(all);
  }
  finish_routing(r);
  return r;
}

// The image of each assignment.
at::Tensor assignment_images(const Routing& routing) {
  return routing.token.floor_divide(std::max<int64_t>(1, routing.layout.per_image));
}

}  // namespace

std::vector<std::pair<const char*, at::Tensor Routing::*>> choice_fields() {
  return {{"token", &Routing::token},
          {"expert", &Routing::expert},
          {"rank", &Routing::rank},
          {"gate", &Routing::gate},
          {"kept", &Routing::kept}};
}

std::vector<std::pair<const char*, at::Tensor SoftRouting::*>> soft_fields() {
  return {{"logits", &SoftRouting::logits}, {"dispatch", &SoftRouting::dispatch}, {"combine", &SoftRouting::combine}};
}

Routings to_routings(const ModelOutput& output) {
  Routings routings;
  for (const Routing& routing : output.routings) routings[routing.layer] = detached(routing);
  for (const SoftRouting& soft : output.soft_routings) {
    Routing& routing = routings[soft.layer];
    routing.layer = soft.layer;
    routing.layout = soft.layout;
    routing.tokens = soft.layout.images * soft.layout.per_image;
    routing.experts = soft.experts;
    routing.soft = std::make_shared<const SoftRouting>(soft);
  }
  return routings;
}

void RoutingCollector::add(const Routings& routings) {
  for (const auto& [layer, routing] : routings) parts_[layer].push_back(routing);
}

Routings RoutingCollector::all() const {
  Routings all;
  for (const auto& [layer, parts] : parts_) all.emplace(layer, joined(parts));
  return all;
}

RoutingReplay::RoutingReplay(Routings routings) {
  for (auto& [name, routing] : routings) {
    Layer layer{.routing = routing};
    if (!routing.soft) {
      const at::Tensor image = assignment_images(routing);
      layer.order = std::get<1>(at::sort(image, /*stable=*/std::optional<bool>(true), 0, /*descending=*/false));
      const at::Tensor last = at::bincount(image, {}, routing.layout.images).cumsum(0);
      layer.first = {0};
      layer.first.insert(layer.first.end(), last.data_ptr<int64_t>(), last.data_ptr<int64_t>() + last.numel());
    }
    layers_.emplace(name, std::move(layer));
  }
}

Routings RoutingReplay::of(const at::Tensor& image) const {
  Routings some;
  for (const auto& [name, layer] : layers_) some.emplace(name, of(layer, image));
  return some;
}

Routing RoutingReplay::of(const Layer& layer, const at::Tensor& image) {
  const Routing& routing = layer.routing;
  const std::vector<int64_t> wanted(image.data_ptr<int64_t>(), image.data_ptr<int64_t>() + image.numel());
  for (const int64_t i : wanted)
    if (i < 0 || i >= routing.layout.images)
      fail("the routing of ", printable(routing.layer), " has ", routing.layout.images, " images, got image number ", i,
           "; numbers are from 0 to ", routing.layout.images - 1);
  Routing r = replayable(routing);
  r.layout.images = image.numel();
  r.tokens = r.layout.images * r.layout.per_image;
  if (routing.soft) {
    r.soft = make_soft_routing(*routing.soft, r, [&](at::Tensor SoftRouting::*field) {
      return ((*routing.soft).*field).index_select(0, image);
    });
    return r;
  }
  std::vector<at::Tensor> assignments, shifts;  // of each image: its indices, and the offset of its token numbers
  for (size_t b = 0; b < wanted.size(); ++b) {
    const int64_t begin = layer.first[wanted[b]], count = layer.first[wanted[b] + 1] - begin;
    assignments.push_back(layer.order.narrow(0, begin, count));
    shifts.push_back(torch::full({count}, (static_cast<int64_t>(b) - wanted[b]) * r.layout.per_image, torch::kLong));
  }
  at::Tensor taken = wanted.empty() ? layer.order.narrow(0, 0, 0) : at::cat(assignments);
  at::Tensor shift = wanted.empty() ? taken : at::cat(shifts);
  if (routing.per_token == 0) {  // in the router's order
    const auto [sorted, order] = at::sort(taken);
    taken = sorted;
    shift = shift.index_select(0, order);
  }
  for (const auto& [name, field] : choice_fields()) r.*field = (routing.*field).index_select(0, taken);
  r.token = r.token + shift;
  finish_routing(r);
  return r;
}

}  // namespace sparsight
