// The setting `target` of attacks that can move images to a class of choice, and the classes that it means. (apgd_t and
// fab_t go through classes too, but any wrong class is a success of theirs: target_classes.h.)
#pragma once

#include <string>

#include "sparsight/attacks/attack_batch.h"
#include "sparsight/core/options.h"

namespace sparsight {

struct TargetOption {
  std::string target = "none";  // "none", "least_likely", "random", or the number of a class
  void declare(OptionSet& set);

  bool is_on() const { return target != "none"; }
};

// Whether `target` is one class, rather than "none" or a rule that gives each image its own.
bool is_one_class(const std::string& target);

// [B] int64: the class that each image is moved to. logits: [B,K] of the images as they are. least_likely: the smallest
// logit of the wrong classes, of equal ones that of the highest class. random: a wrong class, each as likely, from
// (seed, batch.image) alone. Raises UsageError for a target that is none of these, or no class of the model.
at::Tensor chosen_targets(const std::string& target, const AttackBatch& batch, const at::Tensor& logits, uint64_t seed);

}  // namespace sparsight
