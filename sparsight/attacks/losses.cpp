#include "sparsight/attacks/losses.h"

#include <limits>

#include <ATen/TensorOperators.h>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/eval/task_loss.h"
#include "sparsight/ops/softmax_cross_entropy.h"

namespace sparsight {
namespace {

void check_one_class(const at::Tensor& classes) {
  if (classes.dim() != 1)
    fail("this loss takes one label per image, [B]; got labels of shape ", classes.sizes(),
         "; use sigmoid_cross_entropy or margin for images with several classes");
}

// z_c for one class c of each image, [B].
at::Tensor class_logit(const at::Tensor& logits, const at::Tensor& classes) {
  check_one_class(classes);
  return logits.gather(1, classes.unsqueeze(1)).squeeze(1);
}

constexpr double kNoClass = -std::numeric_limits<double>::infinity();

at::Tensor largest_other(const at::Tensor& logits, const at::Tensor& label) {
  return std::get<0>(logits.scatter(1, label.unsqueeze(1), kNoClass).max(1));
}

// The largest of the classes that are not in `sets` [B,K] minus the largest of those that are.
at::Tensor margin_of_sets(const at::Tensor& logits, const at::Tensor& sets) {
  const at::Tensor own = sets.to(at::kBool);
  return std::get<0>(logits.masked_fill(own, kNoClass).max(1)) - std::get<0>(logits.masked_fill(~own, kNoClass).max(1));
}

// The `count` largest logits, [B,count], in descending order.
at::Tensor largest(const at::Tensor& logits, int64_t count, const char* loss) {
  if (logits.size(1) < count)
    fail_usage("the ", loss, " loss needs at least ", count, " classes, the model has ", logits.size(1),
               "; use cross_entropy or margin");
  return std::get<0>(logits.topk(count, 1));
}

struct NamedAttackLoss {
  const char* name;
  AttackLoss loss;
  bool several;  // takes several labels per image
};
constexpr NamedAttackLoss kAttackLosses[] = {{"auto", attack_loss::automatic, true},
                                             {"cross_entropy", attack_loss::cross_entropy, false},
                                             {"sigmoid_cross_entropy", attack_loss::sigmoid_cross_entropy, true},
                                             {"dlr", attack_loss::dlr, false},
                                             {"margin", attack_loss::margin, true}};

const NamedAttackLoss& find_loss(const std::string& name) {
  return kAttackLosses[find_position(name, attack_loss_names(), "attack loss")];
}

}  // namespace

namespace attack_loss {

at::Tensor cross_entropy(const at::Tensor& logits, const AttackLabels& labels) {
  check_one_class(labels.label);
  if (labels.targeted) return -softmax_cross_entropy(logits, labels.target);
  return softmax_cross_entropy(logits, labels.label);
}

at::Tensor sigmoid_cross_entropy(const at::Tensor& logits, const AttackLabels& labels) {
  if (labels.targeted) return -sparsight::sigmoid_cross_entropy(logits, labels.target);
  return sparsight::sigmoid_cross_entropy(logits, labels.label);
}

at::Tensor automatic(const at::Tensor& logits, const AttackLabels& labels) {
  return labels.several() ? sigmoid_cross_entropy(logits, labels) : cross_entropy(logits, labels);
}

at::Tensor dlr(const at::Tensor& logits, const AttackLabels& labels) {
  if (labels.targeted) return targeted_dlr(logits, labels);
  const at::Tensor own = class_logit(logits, labels.label), sorted = largest(logits, 3, "dlr");
  return (largest_other(logits, labels.label) - own) / (sorted.select(1, 0) - sorted.select(1, 2) + 1e-12);
}

at::Tensor targeted_dlr(const at::Tensor& logits, const AttackLabels& labels) {
  const at::Tensor sorted = largest(logits, 4, "targeted dlr");
  const at::Tensor scale = sorted.select(1, 0) - 0.5 * (sorted.select(1, 2) + sorted.select(1, 3)) + 1e-12;
  return targeted_margin(logits, labels) / scale;
}

at::Tensor margin(const at::Tensor& logits, const AttackLabels& labels) {
  if (labels.targeted) return class_logit(logits, labels.target) - largest_other(logits, labels.target);
  if (labels.several()) return margin_of_sets(logits, labels.label);
  const at::Tensor own = class_logit(logits, labels.label);
  return largest_other(logits, labels.label) - own;
}

at::Tensor targeted_margin(const at::Tensor& logits, const AttackLabels& labels) {
  return class_logit(logits, labels.target) - class_logit(logits, labels.label);
}

}  // namespace attack_loss

std::vector<std::string> attack_loss_names() {
  std::vector<std::string> names;
  for (const NamedAttackLoss& entry : kAttackLosses) names.emplace_back(entry.name);
  return names;
}

AttackLoss attack_loss_named(const std::string& name) { return find_loss(name).loss; }

bool attack_loss_takes_several(const std::string& name) { return find_loss(name).several; }

std::string chosen_attack_loss(const std::string& name, bool several_labels) {
  if (name != "auto") return name;
  return several_labels ? "sigmoid_cross_entropy" : "cross_entropy";
}

at::Tensor classified_correctly(const at::Tensor& logits, const at::Tensor& label) {
  const at::Tensor predicted = logits.argmax(1);
  if (label.dim() == 1) return predicted.eq(label);
  return label.gather(1, predicted.unsqueeze(1)).squeeze(1).to(at::kBool);
}

at::Tensor withstands_attack(const at::Tensor& logits, const AttackLabels& labels) {
  return labels.targeted ? logits.argmax(1).ne(labels.target) : classified_correctly(logits, labels.label);
}

}  // namespace sparsight
