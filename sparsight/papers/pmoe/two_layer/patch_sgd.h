// Plain SGD of the two-layer patch network on patches in memory, with the gradients of its paper written out:
// algorithms 1 and 2 of Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient
// for Convolutional Neural Networks", equations 6, 13, 19, 21 and 26. Takes the same steps as `train` would take on the
// model, an order of magnitude faster, as small networks cost more in bookkeeping than in arithmetic. Letters: N
// samples of n patches, d numbers each; B a batch, E experts of F filters, l patches an expert, O outputs.
#pragma once

#include <functional>
#include <memory>

#include "sparsight/core/options.h"
#include "sparsight/models/patch_cnn.h"
#include "sparsight/papers/pmoe/two_layer/patch_set.h"
#include "sparsight/papers/pmoe/two_layer/two_layer_head.h"

namespace sparsight::pmoe {

struct PatchSgdOptions {
  double lr = 0.2;
  int64_t batch = 20;
  int64_t epochs = 150;
  std::string stop = "zero_error";
  double router_lr = 0.2;
  int64_t router_batch = 20;
  int64_t router_epochs = 100;
  void declare(OptionSet& set);
};

// Of the steps of an epoch, each batch before its update.
struct PatchEpoch {
  int64_t epoch = 0;  // 1, 2, ...
  double loss = 0;
  int64_t wrong = 0;
};

class PatchSgd {
 public:
  // Weights change in place. Raises UsageError for a model that is not of the paper's kind: whole-patch ReLU filters
  // without bias, output weights that are fixed, gate "ones" or "topl_softmax".
  PatchSgd(std::shared_ptr<PatchCnn> model, const PatchSet& data, const PatchSgdOptions& options, uint64_t seed);

  // Separate training's first phase: SGD on equation 6, for more than two classes pair by pair (appendix M.1; the last
  // of an odd number is paired with class 0, whose kernel that pair leaves alone). Expert e is that of class e.
  void train_routers();

  // Experts, and with them the routers unless their gate is "ones" (frozen then).
  PatchEpoch train_epoch();
  // To the end by options.stop; on_epoch may be empty.
  std::vector<PatchEpoch> train(const std::function<void(const PatchEpoch&)>& on_epoch = {});

 private:
  struct Taken;
  Taken take(const at::Tensor& samples) const;
  HeadLoss step(const at::Tensor& samples);

  std::shared_ptr<PatchCnn> model_;
  PatchCnnParts parts_;
  PatchSet data_;
  PatchSgdOptions options_;
  uint64_t seed_;
  int64_t epoch_ = 0;
  at::Tensor frozen_;  // [N,E,l] rows of the table, of a frozen router; found when first needed
};

// What the model's router decides on samples first .. first + count - 1; undefined tensors for a model without one.
Routing route_patches(PatchCnn& model, const PatchSet& data, int64_t first, int64_t count);

// The paper's f of every sample: [N,1], or [N,c] for c > 2 classes.
at::Tensor patch_outputs(PatchCnn& model, const PatchSet& data);

// Accuracy of outputs, 0 to 1: the largest of c, or class 1 where f > threshold (equality is wrong either way).
double patch_accuracy(const at::Tensor& outputs, const at::Tensor& labels, double threshold = 0);

}  // namespace sparsight::pmoe
