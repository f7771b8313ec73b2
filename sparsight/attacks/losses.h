// What attacks maximise, for each image: the higher, the closer the image is to being misclassified, or the surer its
// misclassification. Letters: moe/axes.md.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight {

// Labels of a batch: [B] int64 classes, or [B,K] with 1 for each class of an image that has several and 0 elsewhere,
// which automatic, sigmoid_cross_entropy and margin take. target: [B] int64, the class that a targeted loss moves an
// image to. targeted: the attack succeeds only where the model predicts `target`, and then all losses are about it;
// otherwise any wrong class is a success.
struct AttackLabels {
  at::Tensor label;
  at::Tensor target = {};
  bool targeted = false;
  bool several() const { return label.dim() == 2; }  // per image
};

namespace attack_loss {

// logits: [B,K]. Each returns [B] of the logits' dtype (cross_entropy: at least fp32), differentiable. Of labels that
// are `targeted`: minus the two cross entropies of the target, targeted_dlr instead of dlr, and as margin z_target -
// max of the others, which is positive where the model predicts the target.
at::Tensor cross_entropy(const at::Tensor& logits, const AttackLabels& labels);
// cross_entropy of one label per image, sigmoid_cross_entropy of several.
at::Tensor automatic(const at::Tensor& logits, const AttackLabels& labels);
// sum over classes of softplus(z_c) - y_c z_c.
at::Tensor sigmoid_cross_entropy(const at::Tensor& logits, const AttackLabels& labels);
// The difference of logits ratio (Croce and Hein 2020): -(z_y - max of the others) / (largest - third largest + 1e-12).
// Unchanged by z -> a z + b with a > 0; positive where misclassified. Needs 3 classes.
at::Tensor dlr(const at::Tensor& logits, const AttackLabels& labels);
// -(z_y - z_target) / (largest - (third + fourth largest) / 2 + 1e-12). Needs 4 classes.
at::Tensor targeted_dlr(const at::Tensor& logits, const AttackLabels& labels);
// max of the others - z_y, of several labels the largest one; positive where misclassified.
at::Tensor margin(const at::Tensor& logits, const AttackLabels& labels);
// z_target - z_y.
at::Tensor targeted_margin(const at::Tensor& logits, const AttackLabels& labels);

}  // namespace attack_loss

using AttackLoss = at::Tensor (*)(const at::Tensor& logits, const AttackLabels& labels);

// "auto", "cross_entropy", "sigmoid_cross_entropy", "dlr", "margin": those without a target.
std::vector<std::string> attack_loss_names();
// Raises UsageError for an unknown name.
AttackLoss attack_loss_named(const std::string& name);
// Whether it takes several labels per image.
bool attack_loss_takes_several(const std::string& name);
// What "auto" stands for; other names as they are.
std::string chosen_attack_loss(const std::string& name, bool several_labels);

// [B] bool: whether the largest logit is at the label, or at one of the labels of [B,K].
at::Tensor classified_correctly(const at::Tensor& logits, const at::Tensor& label);
// [B] bool: whether an attack has not succeeded: the image is classified correctly or, of a targeted attack, not as the
// target.
at::Tensor withstands_attack(const at::Tensor& logits, const AttackLabels& labels);

}  // namespace sparsight
