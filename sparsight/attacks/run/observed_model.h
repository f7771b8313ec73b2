// The model under attack with what a report says about it: queries of each image, gradients of 0 or not finite. Ends an
// attack on Ctrl-C.
#pragma once

#include <memory>

#include "sparsight/attacks/attacked_model.h"

namespace sparsight {

class ObservedModel : public AttackedModel {
 public:
  // exact: each image goes through the model alone, so that its logits and gradients have the same bits whatever else
  // is in the batch. Otherwise matrix products of other sizes round differently, by about 1e-7.
  ObservedModel(AttackedModel& model, bool exact) : AttackedModel(model.range()), model_(model), exact_(exact) {}

  bool randomised() const override { return model_.randomised(); }
  ImageCoupling coupling() const override { return model_.coupling(); }
  bool coupled() const override { return model_.coupled(); }

  int64_t image_queries(int64_t image) const;
  const GradientCounts& gradients() const { return *gradients_; }
  AttackCounts counts() const override { return {cost(), queries_, *gradients_}; }
  void set_counts(const AttackCounts& counts) override;

 protected:
  // Raises Error for logits that are not finite, and where exact passes would hide that images influence each other.
  // Gradients that are not finite become 0.
  ModelOutput run(const at::Tensor& pixels, const AttackPass& pass) override;

 private:
  void check_alone() const;
  ModelOutput passes(const at::Tensor& pixels, const AttackPass& pass);

  AttackedModel& model_;
  bool exact_;
  std::map<int64_t, int64_t> queries_;  // by image
  // Shared with the hooks of graphs, which a model written in Python may keep for longer.
  std::shared_ptr<GradientCounts> gradients_ = std::make_shared<GradientCounts>();
};

}  // namespace sparsight
