#include "sparsight/attacks/target_option.h"

#include <charconv>
#include <vector>

#include <ATen/ops/full_like.h>
#include <ATen/ops/tensor.h>

#include "sparsight/attacks/target_classes.h"
#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/core/random.h"

namespace sparsight {
namespace {

constexpr const char *kLeastLikely = "least_likely", *kRandomClass = "random";

at::Tensor random_targets(const AttackBatch& batch, int64_t classes, uint64_t seed) {
  const at::Tensor label = batch.labels.label.contiguous(), image = batch.image.contiguous();
  std::vector<int64_t> targets;
  for (int64_t i = 0; i < label.size(0); ++i) {
    const auto number = static_cast<uint64_t>(image.const_data_ptr<int64_t>()[i]);
    const int64_t drawn = RandomStream(seed, "attack.target", number).below(classes - 1);
    targets.push_back(drawn + (drawn >= label.const_data_ptr<int64_t>()[i] ? 1 : 0));
  }
  return at::tensor(targets, at::kLong);
}

int64_t target_number(const std::string& target, int64_t classes) {
  int64_t number = -1;
  const char* end = target.data() + target.size();
  const auto [stop, error] = std::from_chars(target.data(), end, number);
  if (error != std::errc() || stop != end || number < 0 || number >= classes)
    fail_usage("target = \"", printable(target), "\" must be ", kLeastLikely, ", ", kRandomClass,
               " or the number of a class, 0 to ", classes - 1);
  return number;
}

}  // namespace

void TargetOption::declare(OptionSet& set) {
  set.text("target", &target,
           "class that images are moved to: its name or number, least_likely (the wrong class with the smallest logit) "
           "or random (a wrong class, drawn from the seed and the image's number); the attack then succeeds where the "
           "model predicts it, and the losses are those of the target, dlr the targeted one");
}

bool is_one_class(const std::string& target) {
  return target != TargetOption().target && target != kLeastLikely && target != kRandomClass;
}

at::Tensor chosen_targets(const std::string& target, const AttackBatch& batch, const at::Tensor& logits,
                          uint64_t seed) {
  const int64_t classes = logits.size(1);
  if (classes < 2) fail_usage("a targeted attack moves images to another class, but the model has ", classes);
  if (target == kLeastLikely) return target_classes(logits, classes - 1, batch.labels.label).select(1, -1).contiguous();
  if (target == kRandomClass) return random_targets(batch, classes, seed);
  return at::full_like(batch.labels.label, target_number(target, classes));
}

}  // namespace sparsight
