// How much of a layer's routing an attack changes: the experts of each token for the image as it is and for the
// attacked one. Puigcerver et al. 2022, section 4.3: the change rate of a layer is 1 - mean over tokens of |S n S'| /
// |S u S'| (intersection over union), S and S' being a token's sets of experts. Letters: moe/axes.md.
//
// The rates of deep layers accumulate: there the tokens themselves already differ.
#pragma once

#include <string>
#include <vector>

#include "sparsight/moe/routing.h"

namespace sparsight {

// The experts of each token.
struct ExpertSets {
  at::Tensor member;  // [B,S,E] bool
  at::Tensor valid;   // [B,S] bool: false for padding
};

// The sets after capacity: kept assignments with a gate other than 0; and before it: all that were chosen. Raise Error
// for a soft routing, which chooses none, and for tokens that are not arranged in images.
ExpertSets kept_sets(const Routing& routing);
ExpertSets chosen_sets(const Routing& routing);
// From a list: experts [B,S,K] int64, -1 for none.
ExpertSets listed_sets(const at::Tensor& experts, int64_t experts_of_layer);

// A token without experts in both passes, because capacity dropped all of them twice.
enum class BothEmpty {
  unchanged,      // intersection over union 1: the token had none and has none
  public_compat,  // 0, a changed token, as the authors' code has it, where this was meant for padded images
  excluded,       // the token does not count
};

// The rate is the mean over tokens in each image, then over images. Padding does not count, nor do images without any
// token that counts.
struct RoutingChange {
  double sum = 0;      // of the rates of the images
  int64_t images = 0;  // that count

  double rate() const { return images > 0 ? sum / static_cast<double>(images) : 0; }
  void add(const RoutingChange& other) { sum += other.sum, images += other.images; }
};

// [B,S] fp64: 1 - intersection over union of each token; NaN for tokens that do not count. Raises Error for sets of
// other shapes.
at::Tensor token_changes(const ExpertSets& clean, const ExpertSets& attacked,
                         BothEmpty both_empty = BothEmpty::unchanged);
// images: [B] bool, those that count; undefined: all.
RoutingChange routing_change(const ExpertSets& clean, const ExpertSets& attacked,
                             BothEmpty both_empty = BothEmpty::unchanged, const at::Tensor& images = {});

// What changed in one layer.
struct LayerChange {
  std::string layer;
  int64_t experts = 0, per_token = 0;
  RoutingChange kept, chosen;  // after capacity, and before it

  // The rate between two independent uniform choices of per_token of the experts; 0 where only one choice exists
  // (E = K), or where tokens have no fixed number of experts.
  double chance() const;
  // kept.rate() / chance(); NaN where that is 0.
  double of_chance() const;
};

// The routings of two passes over the same images, in forward order; soft ones are not among them. Raises Error unless
// both have the same layers.
std::vector<LayerChange> routing_changes(const std::vector<Routing>& clean, const std::vector<Routing>& attacked,
                                         BothEmpty both_empty = BothEmpty::unchanged);

// The expected change rate of independent uniform sets of k of E experts: 1 - sum over j of C(k,j) C(E-k,k-j) / C(E,k)
// * j / (2k - j).
double chance_change_rate(int64_t experts, int64_t k);

}  // namespace sparsight
