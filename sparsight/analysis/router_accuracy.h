// How often guided routers find the super-class of an image. Daxberger et al. 2023, "Mobile V-MoEs", section 3: expert
// e is for super-class e. Letters: moe/axes.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/core/options.h"
#include "sparsight/moe/routing.h"

namespace sparsight {

// [B,E]: a router's probabilities of the experts for each image: softmax of the logits without noise, before top-k,
// averaged over the image's tokens (without padding). Undefined for routings without logits and for soft ones. images:
// B. Raises Error if the tokens are not a multiple of the images.
at::Tensor router_probabilities(const Routing& routing, int64_t images);

// [B] int64: the expert with the largest of these probabilities; ties go to the lowest expert. For a router that
// decides per image this is its first choice without noise. Undefined where router_probabilities() is.
at::Tensor router_choice(const Routing& routing, int64_t images);

// How many images of one or more batches a router assigns to the expert of their super-class.
struct RouterHits {
  std::string layer;  // Routing::layer
  int64_t images = 0;
  int64_t hits = 0;  // images whose router_choice() is their super-class
  double accuracy() const { return images == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(images); }
};

// One entry for each routing with logits for `groups` experts. super_class: [B] int64 of each image.
std::vector<RouterHits> router_hits(const std::vector<Routing>& routings, const at::Tensor& super_class,
                                    int64_t groups);

// The mean accuracy over the layers; nothing without any.
std::optional<double> mean_router_accuracy(const std::vector<RouterHits>& layers);

// Sums over the batches of an evaluation.
class RouterAccuracy {
 public:
  // super_class_of: [K] the super-class of each class; empty: nothing is measured.
  explicit RouterAccuracy(const std::vector<int64_t>& super_class_of);
  // labels: [B] int64 classes.
  void add(const std::vector<Routing>& routings, const at::Tensor& labels);

  bool measures() const { return of_class_.defined(); }
  // The layers in forward order.
  const std::vector<RouterHits>& layers() const { return layers_; }
  std::optional<double> mean() const { return mean_router_accuracy(layers_); }
  // Sets router_accuracy in the entries of RoutingAccumulator::layers().
  void put_into(Json& layers) const;

 private:
  at::Tensor of_class_;  // [K] int64
  int64_t groups_ = 0;
  std::vector<RouterHits> layers_;
};

}  // namespace sparsight
