// The attack on some images, as it is saved and read again. Letters: moe/axes.md.
#pragma once

#include <string>
#include <vector>

#include "sparsight/attacks/cascade.h"
#include "sparsight/attacks/run/attack_plan.h"
#include "sparsight/attacks/run/attack_success.h"
#include "sparsight/attacks/run/attacked_images.h"
#include "sparsight/attacks/run/observed_model.h"
#include "sparsight/models/routings.h"

namespace sparsight {

// What the model says about images: the logits that decide, mean over passes for a model with noise, and a routing.
struct ModelVerdict {
  at::Tensor logits;                // [B,K] fp32; of a model in fp64, fp64
  Routings routings;                // of all images in order
  std::vector<std::string> layers;  // the names of the routings, in forward order
};

// Passes over `batch_size` images at a time.
ModelVerdict model_verdict(AttackedModel& model, const AttackBatch& batch, const at::Tensor& pixels,
                           int64_t batch_size);

struct AttackShard {
  AttackBatch batch;     // of the images as they are
  std::string checksum;  // AttackedBatch::checksum
  at::Tensor pixels;     // [B,C,H,W] after the attack. Of an image that no stage of a cascade fools: the image itself
  at::Tensor stage;      // [B] int64: number of the stage that fooled it, -1 for none
  at::Tensor target;     // [B] int64: the class that it was to become; undefined for an untargeted attack
  at::Tensor norm, queries;  // [B] fp64, int64
  at::Tensor distance;       // CascadeResult::distance
  ModelVerdict clean, attacked;
  std::vector<StageResult> stages;
  AttackCost cost;  // of the stages and the first pass
  GradientCounts gradients;
};

struct PieceAttack {
  const AttackPlan& plan;
  AttackContext context;
  int64_t batch_size = 0;
  bool exact = false;  // the model's passes are of single images
  CascadeProgress progress = {};
};

// A single attack runs on all images, and its points are kept whether they fool or not; a targeted one leaves out those
// whose label is the target, unless others need them. A cascade attacks what is left. batch.image is defined.
CascadeResult run_plan(AttackedModel& model, const AttackBatch& batch, const PieceAttack& how);

AttackShard attack_shard(ObservedModel& model, const AttackedBatch& images, const PieceAttack& how);

// folder: made whole or not at all.
void write_piece(const std::string& folder, const AttackShard& piece);
// What a saved piece must be of.
struct PieceShape {
  std::vector<int64_t> pixels;  // {B, C, H, W}
  int64_t classes = 0;
  size_t stages = 0;
  bool targeted = false;
  bool measured = false;  // measures_distances()
};
// The shard without `batch`, which the dataset has. Raises Error, naming the folder, for a damaged one: another shape,
// or values that no attack writes.
AttackShard read_piece(const std::string& folder, const PieceShape& shape);

// Where the attack succeeded, by the last passes.
AttackSuccess piece_success(const AttackShard& piece);
// [B] bool: classified correctly as they are, and so after the attack.
at::Tensor clean_correct(const AttackShard& piece);
at::Tensor attacked_correct(const AttackShard& piece);

}  // namespace sparsight
