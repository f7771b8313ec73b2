// Plain SGD for the two-layer patch network on patches in memory, with hand-written gradients: algorithms 1 and 2 of
// Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient
// for Convolutional Neural Networks", equations 6, 13, 19, 21 and 26. Takes the same steps as `train` on the model but
// an order of magnitude faster, since small networks spend more time on overhead than on arithmetic. Letters: N
// samples, n patches per sample, d width of a patch, B batch size, E experts of F filters, l patches per expert, O
// outputs.
// Differs from the paper: equation 26 as printed sums over all m neurons; here over the m/k of the expert. Equation 4
// as printed has no exp in its denominator; the gates here are a softmax over the chosen patches.
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
  int64_t router_samples = 0;
  void declare(OptionSet& set);
};

// Statistics of an epoch. Each batch is evaluated before its update.
struct PatchEpoch {
  int64_t epoch = 0;  // 1, 2, ...
  double loss = 0;
  int64_t wrong = 0;
};

class PatchSgd {
 public:
  // Trains the model in place. Raises UsageError for a model unlike the paper's, which has ReLU filters over whole
  // patches without bias, fixed output weights, and gate "ones" or "topl_softmax".
  PatchSgd(std::shared_ptr<PatchCnn> model, const PatchSet& data, const PatchSgdOptions& options, uint64_t seed);

  // First phase of separate training: SGD on equation 6, with more than two classes pair by pair (appendix M.1).
  // Expert e is that of class e. Only the first options.router_samples samples are used, N_r of lemma 4.1; all if that
  // is 0 or there are not so many. Differs from the paper: it needs an even number of classes; here the last class of
  // an odd number is paired with class 0, and this pair does not update class 0's kernel.
  void train_routers();

  // Trains the experts, and the routers too unless their gate is "ones" (then they are frozen).
  PatchEpoch train_epoch();
  // Trains until options.stop says so; on_epoch may be empty.
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
  at::Tensor frozen_;  // [N,E,l] table rows chosen by a frozen router; computed on first use
};

// The routing of samples first .. first + count - 1; undefined tensors for a model without a router.
Routing route_patches(PatchCnn& model, const PatchSet& data, int64_t first, int64_t count);

// The paper's f for every sample: [N,1], or [N,c] for c > 2 classes.
at::Tensor patch_outputs(PatchCnn& model, const PatchSet& data);

// Accuracy, 0 to 1. Predicts the argmax of c outputs, or class 1 if f > threshold (f = threshold is always wrong).
double patch_accuracy(const at::Tensor& outputs, const at::Tensor& labels, double threshold = 0);

}  // namespace sparsight::pmoe
