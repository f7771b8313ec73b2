// Several attacks in turn, each on the images that are still classified correctly (AutoAttack; Croce and Hein 2020): an
// image is robust if none fools it.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/attacks/attack.h"
#include "sparsight/core/progress.h"

namespace sparsight {

struct CascadeStage {
  std::string name;    // "apgd-ce"
  std::string attack;  // in attacks()
  Json settings;       // of the attack
};

// "standard": apgd-ce, apgd-t, fab-t, square. "plus": apgd-ce and apgd-dlr and fab of 5 runs each, square, apgd-t,
// fab-t. "rand", for models with noise: apgd-ce and apgd-dlr with gradients averaged over 20 passes. Raises UsageError
// for others.
std::vector<CascadeStage> cascade_stages(const std::string& version);

// gained: images that are robust no more. Where images influence each other, one may have become robust again.
struct StageResult {
  std::string name;
  int64_t robust_before = 0, gained = 0;
  AttackCost cost;
  double seconds = 0;
};

struct CascadeResult {
  at::Tensor pixels;  // [B,...]: of an image that is still robust, or misclassified as it is, the image itself; where
                      // images influence each other, each batch as it was when the fewest of its images were robust
  at::Tensor clean;   // [B] bool: classified correctly as it is
  at::Tensor robust;  // [B] bool: classified correctly after every attack; in coupled batches, those that are kept
  at::Tensor stage;   // [B] int64: number of the stage that fooled the image, -1 for none
  at::Tensor distance = {};  // as AttackResult has it, of a single attack that measures distances; else undefined
  std::vector<StageResult> stages;
  AttackCost cost;                    // with the first pass over all images
  at::Tensor target = {};             // [B] int64: the classes of a targeted attack, which is none of a cascade's
  std::vector<std::string> warnings;  // why the numbers may not mean what they seem to (cascade_warnings.h)

  double clean_accuracy() const;   // 0 to 1
  double robust_accuracy() const;  // misclassified images count as not robust
};

// Called before each call of an attack, with the number of the stage. May raise an exception to end the cascade.
using CascadeProgress = std::function<void(size_t stage, int64_t robust)>;
// Shows it as a share of the images first .. end of `progress`; every stage counts alike.
CascadeProgress show_stages(Progress& progress, const std::vector<CascadeStage>& stages, int64_t first, int64_t end);

// [B,K]: verdict_logits() of the images as they are.
at::Tensor clean_logits(AttackedModel& model, const AttackBatch& batch, int64_t batch_size);
// [B] bool: which images are classified correctly as they are.
at::Tensor classify(AttackedModel& model, const AttackBatch& batch, int64_t batch_size);

// batch: any number of images, which are attacked `batch_size` at a time. Each attack starts from the images
// themselves. The warnings are left to the caller.
CascadeResult run_stages(AttackedModel& model, const AttackBatch& batch, const AttackContext& context,
                         const std::vector<CascadeStage>& stages, int64_t batch_size,
                         const CascadeProgress& progress = {});
// Calls run_stages(), and adds warnings to its result.
CascadeResult run_cascade(AttackedModel& model, const AttackBatch& batch, const AttackContext& context,
                          const std::vector<CascadeStage>& stages, int64_t batch_size);

// {images, clean_accuracy, robust_accuracy, threat, stages: [{name, ...}], queries, gradients, warnings}
Json to_json(const CascadeResult& result, const AttackContext& context);

}  // namespace sparsight
