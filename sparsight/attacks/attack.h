// The interface of every attack: it changes images within a threat model so that a model misclassifies them. An attack
// is one .h and .cpp and a line in register_attacks.cpp.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "sparsight/attacks/attack_batch.h"
#include "sparsight/attacks/attacked_model.h"
#include "sparsight/attacks/target_option.h"
#include "sparsight/attacks/threat_model.h"

namespace sparsight {

// One evaluation of an iterative attack, for curves of its progress. Tensors are those of the images still attacked.
struct AttackStep {
  int64_t iteration = 0;  // 0: the start
  at::Tensor image;       // [B] int64
  at::Tensor pixels;      // [B,...] where the loss was evaluated
  at::Tensor loss;        // [B]
  at::Tensor best_loss;   // [B] so far
  at::Tensor step_size;   // [B] of the step that led here; undefined at the start
};

class AttackSaver;

struct AttackContext {
  ThreatModel threat = {};
  uint64_t seed = 0;
  std::function<void(const AttackStep&)> observe = {};  // may be null
  AttackSaver* saver = nullptr;                         // not owned; null: a killed attack begins again
};

struct AttackResult {
  at::Tensor pixels;          // [B,...] within the threat model
  at::Tensor correct;         // [B] bool: whether the model still classifies them correctly
  AttackCost cost;            // of the attack and of that classification
  at::Tensor withstood = {};  // [B] bool: withstands_attack(); the same as `correct` but for a targeted attack
  at::Tensor target = {};     // [B] int64: the classes of a targeted attack; undefined for others
  at::Tensor distance = {};  // of attacks that measure distances: [B] fp64, the norm of the smallest perturbation found
                             // that fools the model, 0 where the image does, infinite where none was found
};

// What an attack finds.
struct Perturbation {
  at::Tensor pixels;         // [B,...]
  at::Tensor distance = {};  // as AttackResult has it
};

class Attack {
 public:
  explicit Attack(AttackContext context) : context_(std::move(context)) {}
  virtual ~Attack() = default;

  // Raises Error for images or labels of the wrong shape or range, and for a model that takes pixels of another range.
  AttackResult run(AttackedModel& model, const AttackBatch& batch) const;
  // The pixels alone, [B,...], as training needs them: without the check of what the attack did, and without the pass
  // that says which images are still classified correctly.
  at::Tensor pixels(AttackedModel& model, const AttackBatch& batch) const;

  const AttackContext& context() const { return context_; }
  // False for attacks that only look at logits, which quantised models have too.
  virtual bool needs_gradients() const { return true; }
  // False for attacks that may leave the range of pixels.
  virtual bool clips_pixels() const { return true; }
  // Whether what it maximises is one number of all images, so that they have to be attacked together.
  virtual bool couples_images() const { return false; }
  // Which norms bound its perturbations. The l1 ball needs steps of its own (l1_ball.h).
  virtual bool takes_norm(Norm norm) const { return norm != Norm::l1; }
  // Whether it looks for the smallest perturbation, and says how small that is (AttackResult::distance).
  virtual bool measures_distances() const { return false; }
  // Whether images may have several labels, [B,K].
  virtual bool takes_several_labels() const { return false; }
  // Its setting `target`; null for attacks that cannot be targeted, which refuse labels that are.
  virtual const TargetOption* target() const { return nullptr; }

 protected:
  // Returns pixels of the same shape. batch.image is defined.
  virtual at::Tensor perturb(AttackedModel& model, const AttackBatch& batch) const = 0;
  // The same with distances, for attacks that measure them.
  virtual Perturbation perturb_and_measure(AttackedModel& model, const AttackBatch& batch) const {
    return {perturb(model, batch)};
  }

 private:
  AttackBatch prepared(AttackedModel& model, const AttackBatch& given) const;

  AttackContext context_;
};

// Numbers the evaluations of one run of an attack: its `iteration`s follow from here. part: the name of the attack and
// what is attacked.
uint64_t first_step(const std::string& part, int64_t restart, int64_t target = 0);

// The images that an attack goes on with, [n] int64: those at `robust` [B] bool, or all where they influence each
// other.
at::Tensor images_to_attack(const at::Tensor& robust, bool coupled);

// The batch with the classes that a targeted attack moves its images to, given the logits [B,K] of the images as they
// are. The batch itself where the attack is not targeted, or where it has its targets already.
AttackBatch with_chosen_targets(const Attack& attack, AttackBatch batch, const at::Tensor& logits);

// [B,K]: the logits that decide, for a randomised model the mean of kVerdictPasses passes.
inline constexpr int64_t kVerdictPasses = 10;
at::Tensor verdict_logits(AttackedModel& model, const AttackBatch& batch, const at::Tensor& pixels, uint64_t step);
// [B] bool: classified_correctly() and withstands_attack() of these.
at::Tensor still_correct(AttackedModel& model, const AttackBatch& batch, const at::Tensor& pixels, uint64_t step);
at::Tensor still_withstands(AttackedModel& model, const AttackBatch& batch, const at::Tensor& pixels, uint64_t step);

}  // namespace sparsight
