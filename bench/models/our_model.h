// Whole vision transformers of the library, dense and routed, with random weights. Letters: sparsight/moe/axes.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sparsight/dist/gradient_sum.h"
#include "sparsight/models/program_model.h"
#include "sparsight/optim/optimizer.h"

namespace sparsight::bench {

constexpr int64_t kSide = 224, kClasses = 1000;

// What the MLPs of the last two blocks are: "dense"; "top1" and "top2", one or two of 8 experts per token (V-MoE);
// "mobile", one of 10 experts per image, for both blocks by one router (Mobile V-MoE). "gmoe": those of blocks -4 and
// -2 are one of 6 experts per token as GMoE is trained, with its cosine router, noise, capacity, losses and expert
// dropout.
const std::vector<std::string>& routing_kinds();

struct ModelCase {
  std::string size = "12x384";  // [model] size
  int64_t patch = 32;
  std::string routing = "dense";
  int64_t batch = 1;
  bool bf16 = false;  // forward: weights packed as bf16; training: products in bf16 (autocast)
};

class OurModel {
 public:
  // Raises UsageError for an unknown size.
  explicit OurModel(const ModelCase& which);

  const at::Tensor& pixels() const { return pixels_; }  // [B,3,H,W] in 0..1
  const at::Tensor& labels() const { return labels_; }  // [B] int64
  const std::shared_ptr<ImageModel>& model() const { return model_; }
  double operations() const { return operations_; }  // multiplications and additions of a forward pass
  void save(const std::string& path) const;          // weights under timm's names, "pixels" and "labels"

  // Compiles the model, as `sparsight predict` does.
  void compile();
  // The forward pass as `sparsight predict` runs it, for these pixels: [B,K]. The only place that a faster inference
  // path has to enter.
  at::Tensor predict();

  // In evaluation with the weights that training changes: [B,K].
  at::Tensor logits() const;

  // Cross-entropy (GMoE's auxiliary losses added), gradients and AdamW (lr 1e-4), of so many batches, which are all
  // these pixels. sum: that of the ranks, if there are several. Returns the last loss before the step.
  double train_step(int64_t batches = 1, dist::GradientSum* sum = nullptr);

 private:
  ModelOutput forward(const ForwardMode& mode) const;
  ModelCase which_;
  std::shared_ptr<ImageModel> model_;
  std::shared_ptr<const ProgramModel> program_;  // null before compile()
  std::shared_ptr<Optimizer> optimizer_;         // null before the first step
  uint64_t step_ = 0;                            // of training, for its random samples
  at::Tensor pixels_, labels_;
  double operations_ = 0;
};

}  // namespace sparsight::bench
