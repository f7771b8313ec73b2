#include "sparsight/analysis/routing_change.h"

#include <cmath>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

// which: [A] bool.
ExpertSets find_sets(const Routing& routing, const at::Tensor& which) {
  const TokenLayout& layout = routing.layout;
  const at::Tensor member = at::zeros({routing.tokens * routing.experts}, at::kBool);
  const at::Tensor place = (routing.token * routing.experts + routing.expert).cpu();
  member.index_fill_(0, place.masked_select(which.cpu()), 1);
  const at::Tensor valid = routing.valid.defined() ? routing.valid.cpu() : at::ones({routing.tokens}, at::kBool);
  return {member.view({layout.images, layout.per_image, routing.experts}),
          valid.view({layout.images, layout.per_image})};
}

void check_choices(const Routing& routing) {
  if (routing.soft)
    fail("the layer ", printable(routing.layer),
         " mixes tokens and chooses no experts, so that no choice can change; compare its outputs instead");
  const TokenLayout& layout = routing.layout;
  if (layout.images * layout.per_image != routing.tokens)
    fail("the routing of ", printable(routing.layer), " has ", routing.tokens, " tokens for a layout of ",
         layout.images, " images of ", layout.per_image, " tokens");
}

// K where each token has exactly as many choices, else 0.
int64_t fixed_choices(const Routing& routing) {
  const int64_t tokens = routing.valid.defined() ? routing.valid.sum().item<int64_t>() : routing.tokens;
  return routing.token.numel() == tokens * routing.per_token ? routing.per_token : 0;
}

double binomial(int64_t n, int64_t k) {
  if (k < 0 || k > n) return 0;
  double product = 1;
  for (int64_t i = 1; i <= k; ++i) product *= static_cast<double>(n - k + i) / static_cast<double>(i);
  return product;
}

}  // namespace

ExpertSets kept_sets(const Routing& routing) {
  check_choices(routing);
  return find_sets(routing, routing.kept & (routing.gate.detach() != 0));
}

ExpertSets chosen_sets(const Routing& routing) {
  check_choices(routing);
  return find_sets(routing, at::ones_like(routing.kept));
}

ExpertSets listed_sets(const at::Tensor& experts, int64_t experts_of_layer) {
  if (experts.dim() != 3 || experts.scalar_type() != at::kLong)
    fail("a list of experts must be int64 [images, tokens, choices], got ", experts.scalar_type(), " ",
         experts.sizes());
  if (experts.numel() > 0 && (experts.min().item<int64_t>() < -1 || experts.max().item<int64_t>() >= experts_of_layer))
    fail("a list of experts has numbers from ", experts.min().item<int64_t>(), " to ", experts.max().item<int64_t>(),
         "; they must be from 0 to ", experts_of_layer - 1, ", or -1 for none");
  // One more expert takes what is none.
  const at::Tensor place = at::where(experts < 0, at::full_like(experts, experts_of_layer), experts);
  const at::Tensor member =
      at::zeros({experts.size(0), experts.size(1), experts_of_layer + 1}, at::kBool).scatter(2, place, 1);
  return {member.narrow(2, 0, experts_of_layer), at::ones({experts.size(0), experts.size(1)}, at::kBool)};
}

at::Tensor token_changes(const ExpertSets& clean, const ExpertSets& attacked, BothEmpty both_empty) {
  if (clean.member.sizes() != attacked.member.sizes())
    fail("cannot compare the experts of ", clean.member.sizes(), " images, tokens and experts with those of ",
         attacked.member.sizes());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const at::Tensor common = (clean.member & attacked.member).sum(2).to(at::kDouble);
  const at::Tensor together = (clean.member | attacked.member).sum(2).to(at::kDouble);
  const double empty = both_empty == BothEmpty::unchanged ? 0 : both_empty == BothEmpty::excluded ? nan : 1;
  const at::Tensor change = at::where(together > 0, 1 - common / together, empty);
  return at::where(clean.valid & attacked.valid, change, nan);
}

RoutingChange routing_change(const ExpertSets& clean, const ExpertSets& attacked, BothEmpty both_empty,
                             const at::Tensor& images) {
  at::Tensor changes = token_changes(clean, attacked, both_empty);
  if (images.defined()) changes = at::where(images.unsqueeze(1), changes, std::numeric_limits<double>::quiet_NaN());
  const at::Tensor counted = ~changes.isnan(), tokens = counted.sum(1);
  const at::Tensor rates = at::nan_to_num(changes, 0.0).sum(1) / tokens.clamp_min(1).to(at::kDouble);
  RoutingChange change;
  change.images = (tokens > 0).sum().item<int64_t>();
  change.sum = rates.sum().item<double>();
  return change;
}

double LayerChange::chance() const { return per_token > 0 ? chance_change_rate(experts, per_token) : 0; }

double LayerChange::of_chance() const {
  return chance() > 0 ? kept.rate() / chance() : std::numeric_limits<double>::quiet_NaN();
}

std::vector<LayerChange> routing_changes(const std::vector<Routing>& clean, const std::vector<Routing>& attacked,
                                         BothEmpty both_empty) {
  if (clean.size() != attacked.size())
    fail("cannot compare the routings of ", clean.size(), " layers with those of ", attacked.size());
  std::vector<LayerChange> changes;
  for (size_t i = 0; i < clean.size(); ++i) {
    const Routing &before = clean[i], &after = attacked[i];
    if (before.layer != after.layer)
      fail("cannot compare the routing of ", printable(before.layer), " with that of ", printable(after.layer));
    const int64_t choices = fixed_choices(before);
    changes.push_back({before.layer, before.experts, choices == fixed_choices(after) ? choices : 0,
                       routing_change(kept_sets(before), kept_sets(after), both_empty),
                       routing_change(chosen_sets(before), chosen_sets(after), both_empty)});
  }
  return changes;
}

double chance_change_rate(int64_t experts, int64_t k) {
  if (k < 1 || k > experts)
    fail_usage("a chance change rate takes 1 to ", experts, " of ", experts, " experts, got ", k);
  double unchanged = 0;
  for (int64_t j = 0; j <= k; ++j)
    unchanged += binomial(k, j) * binomial(experts - k, k - j) / binomial(experts, k) * static_cast<double>(j) /
                 static_cast<double>(2 * k - j);
  return 1 - unchanged;
}

}  // namespace sparsight
