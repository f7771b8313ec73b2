// A model as attacks see it: pixels in, logits out, every pass counted. AttackedImageModel (attacked_image_model.h) is
// one of the library's models; AttackedFunction is any function of pixels.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include <ATen/core/Tensor.h>

#include "sparsight/attacks/threat_model.h"
#include "sparsight/models/model_input.h"
#include "sparsight/models/model_output.h"

namespace sparsight {

// What a pass needs besides pixels. Random numbers of a pass are a function of the step and of the images' numbers.
struct AttackPass {
  at::Tensor image;                   // [B] int64: the number of each image in the data
  uint64_t step = 0;                  // passes of different steps have different router noise
  ExpertsHook pre_experts_hook = {};  // reads or replaces what MoE layers do; ignored by models without any
};

// Costs that do not depend on the machine: images that went through the model.
struct AttackCost {
  int64_t queries = 0;    // forward passes of one image
  int64_t gradients = 0;  // backward passes of one image
};
AttackCost operator-(const AttackCost& a, const AttackCost& b);
AttackCost& operator+=(AttackCost& sum, const AttackCost& cost);

// Counts of the images that went through a backward pass.
struct GradientCounts {
  int64_t images = 0, zero = 0, not_finite = 0;
};

// All that a model counts of its passes; queries by image and gradients only where it does.
struct AttackCounts {
  AttackCost cost = {};
  std::map<int64_t, int64_t> queries = {};
  GradientCounts gradients = {};
};

// Why the images of a batch influence each other.
struct ImageCoupling {
  bool capacity = false;  // they share the experts' capacity
  bool choices = false;   // routers choose experts among all of them (Router::mixes_images)
  bool any() const { return capacity || choices; }
};

class AttackedModel {
 public:
  explicit AttackedModel(const PixelRange& range = {}) : range_(range) {}
  virtual ~AttackedModel() = default;

  // pixels: [B,...] in range(). Returns logits [B,K]; differentiable with respect to the pixels where gradients are
  // enabled, and never with respect to weights. Counts B queries.
  ModelOutput forward(const at::Tensor& pixels, const AttackPass& pass);
  void count_gradients(int64_t images) { cost_.gradients += images; }
  const AttackCost& cost() const { return cost_; }
  virtual AttackCounts counts() const { return {.cost = cost_}; }
  virtual void set_counts(const AttackCounts& counts) { cost_ = counts.cost; }
  const PixelRange& range() const { return range_; }

  // Whether two passes of an image may differ. Certain after the first pass.
  virtual bool randomised() const { return false; }
  // Whether the images of a batch influence each other: then they have to be attacked together, and what fools some of
  // them holds only beside the others. Capacity is known after the first pass.
  virtual ImageCoupling coupling() const { return {}; }
  virtual bool coupled() const { return coupling().any(); }

 protected:
  virtual ModelOutput run(const at::Tensor& pixels, const AttackPass& pass) = 0;

 private:
  PixelRange range_;
  AttackCost cost_;
};

// A plain function of pixels, for tests and for models from elsewhere.
class AttackedFunction : public AttackedModel {
 public:
  using Logits = std::function<at::Tensor(const at::Tensor& pixels)>;
  using Output = std::function<ModelOutput(const at::Tensor& pixels, const AttackPass& pass)>;

  explicit AttackedFunction(Logits logits, const PixelRange& range = {});
  AttackedFunction(Output output, bool randomised, const PixelRange& range = {});

  bool randomised() const override { return randomised_; }

 protected:
  ModelOutput run(const at::Tensor& pixels, const AttackPass& pass) override { return output_(pixels, pass); }

 private:
  Output output_;
  bool randomised_ = false;
};

}  // namespace sparsight
