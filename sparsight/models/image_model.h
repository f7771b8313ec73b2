// The interface of every model: pixels in, ModelOutput out. A model is
//
//   normalize (statistics saved as buffers) -> backbone -> features [B,D] -> head -> logits [B,K]
//
// Letters: moe/axes.md.
#pragma once

#include <functional>
#include <memory>

#include <torch/nn/module.h>

#include "sparsight/core/registry.h"
#include "sparsight/cost/convention.h"
#include "sparsight/cost/part_cost.h"
#include "sparsight/engine/program_builder.h"
#include "sparsight/models/model_input.h"
#include "sparsight/models/model_output.h"
#include "sparsight/models/normalize.h"
#include "sparsight/moe/moe_spec.h"

namespace sparsight {

// What a model needs to know about the dataset.
struct ImageShape {
  int64_t channels = 3;
  int64_t height = 32;
  int64_t width = 32;
  int64_t classes = 10;
};

// What a model is built from, in addition to its own options.
struct ModelContext {
  ImageShape image;
  MoeSpec moe;
  PixelStatistics pixels = {};  // for normalising images; empty: not normalised
};

// The arguments of make_model(), for building the same model again.
struct ModelDefinition {
  Json config;  // resolved
  ImageShape image;
  PixelStatistics pixels;
  dist::ExpertRanks ranks = {};
};

// A new model has uninitialised weights: call initialize(model, seed) of nn/init.h, or load weights.
// Parameter names follow timm where timm has the model.
class ImageModel : public torch::nn::Module {
 public:
  // Normalises by `pixels`, unless they are empty. Raises UsageError if they do not match the image's channels.
  explicit ImageModel(const ImageShape& image, const PixelStatistics& pixels = {});

  // images: [B,C,H,W], pixels in 0..1. input.mode says what the pass does; torch's train() and eval() have no effect.
  // Raises Error for images of the wrong shape or dtype, for inputs that do not match them, and for unknown taps.
  ModelOutput forward(const ModelInput& input);

  // The two halves of forward(): the backbone, and the head. features: [B,D] -> [B,K] fp32 (fp64 for fp64).
  ModelOutput features(const ModelInput& input);
  virtual at::Tensor classify(const at::Tensor& features) = 0;

  // The names that ModelInput::taps accepts, in forward order: modules such as "blocks.3". The value of a tap is the
  // module's output.
  virtual std::vector<std::string> tap_names() const { return {}; }

  // The model without torch, in evaluation: everything between pixels in 0..1 and logits (engine/program.h). Raises
  // Error, saying why, where a part of the model has no such form.
  engine::Program compile(const engine::WeightForm& form = {}) const;

  // How many training images fit() wants; 0: none, the model starts from random weights alone.
  virtual int64_t images_to_fit() const { return 0; }
  // Sets what the model takes from training images before its first step. images: [B,C,H,W], pixels in 0..1.
  void fit(const at::Tensor& images);

  // Empty if the model does not normalise.
  PixelStatistics pixel_statistics() const;
  // Raises UsageError if they do not match the channels, or the model does not normalise.
  void set_pixel_statistics(const PixelStatistics& pixels);

  // Null unless make_model() built the model.
  const std::shared_ptr<const ModelDefinition>& definition() const { return definition_; }
  void set_definition(ModelDefinition definition) {
    definition_ = std::make_shared<const ModelDefinition>(std::move(definition));
  }

  // Cost of one image, part by part, each named by the prefix of its parameters. The default is an estimate, marked as
  // such: each registered matrix is applied once per image, a lower bound for models with tokens or positions.
  virtual std::vector<PartCost> cost(const CostOptions& options) const;

 protected:
  // What a program of the model computes at its end.
  struct CompiledOutputs {
    engine::Value features, logits;  // [B,D], [B,K]
  };
  // Adds all steps but the normalisation. By default raises Error.
  virtual CompiledOutputs compile_steps(engine::ProgramBuilder& builder) const;

  // fit() with normalised images.
  virtual void fit_to(const at::Tensor&) {}

  // input.images: [B,C,H,W] of the model's shape, normalised. Sets everything in the output but the logits.
  virtual ModelOutput run(const ModelInput& input) = 0;

  // Keeps x in out.taps if input.taps has the name cat(name...).
  template <class... Name>
  static void tap(const ModelInput& input, ModelOutput& out, const at::Tensor& x, const Name&... name) {
    if (!input.taps.empty()) keep_tap(input, out, x, cat(name...));
  }

  const ImageShape image_;

 private:
  static void keep_tap(const ModelInput& input, ModelOutput& out, const at::Tensor& x, const std::string& name);

  std::shared_ptr<Normalize> normalize_;  // null if the model does not normalise
  std::shared_ptr<const ModelDefinition> definition_;
};

// Returns the model's output for a batch, as ImageModel::forward() does.
using Predictor = std::function<ModelOutput(const ModelInput& input)>;

// Raises Error unless the images are as check_images() wants them and their numbers [B] int64 from 0 on.
void check_input(const ModelInput& input, const ImageShape& shape);
// Raises Error unless given routings are for routers that the model has.
void check_routings(const std::map<std::string, Routing>& routings, const std::vector<std::string>& routers);
// Raises Error unless images are [B,C,H,W] of a floating-point type and of the model's shape.
void check_images(const at::Tensor& images, const ImageShape& shape);
// The head's output in fp32 (fp64 for fp64), so that losses are computed in it under autocast.
at::Tensor as_logits(const at::Tensor& head);

// For models whose logits for two classes are (0, f), so that their cross-entropy is the logistic loss of f: the head
// then has a single output f. With more classes it has one output per class.
int64_t head_outputs(int64_t classes);
at::Tensor two_class_logits(const at::Tensor& f);  // [B,1] -> [B,2]

}  // namespace sparsight
