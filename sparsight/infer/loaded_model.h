// A trained model with everything needed to use it, from a run folder or a single checkpoint file.
#pragma once

#include <atomic>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sparsight/data/data_set.h"
#include "sparsight/data/transforms/pipeline.h"
#include "sparsight/eval/task_loss.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/models/expert_weights.h"
#include "sparsight/models/program_model.h"

namespace sparsight {

struct LoadedModel {
  std::string path;                     // of the checkpoint
  int64_t step = 0;                     // of training
  Json config;                          // the sections of catalogue/model_sections.h, resolved, with the overrides
  DataInfo data;                        // what it was trained on
  std::vector<int64_t> super_class_of;  // [K] of its guided routers; empty: none is guided (eval/guidance.h)
  TaskLoss task_loss = TaskLoss::cross_entropy;  // that it was trained with, which says what its probabilities are
  ImageShape shape;                              // of the images it takes
  TransformPipeline eval_transforms;             // from a uint8 image to the pixels in 0..1 that the model takes
  std::shared_ptr<ImageModel> model;             // with averaged weights where the checkpoint has them; null once
                                                 // compile() has replaced it
  std::shared_ptr<const ProgramModel> program;   // null before compile(), and where the model has no such form
  std::string algorithm;                         // that trained it, by name; "" where the checkpoint does not say
  std::string weights = "model";                 // "ema" or "swa" for averaged weights
  std::shared_ptr<std::atomic<bool>> resize_logged = std::make_shared<std::atomic<bool>>(false);  // see model_image()

  std::string weight_type = "fp32";  // of the program, once there is one
  ExpertWeights expert_weights;

  // Set by compile(): whether the experts of an image depend on the others of its batch, and what one image costs.
  bool mixes_images = true;
  int64_t multiply_adds = 0;

  // The answers to a batch in evaluation: by the program if there is one, else by the model.
  ModelOutput forward(const ModelInput& input) const;
};

// `path`: a run folder, a checkpoint in one file or several (io/sharded_weights.h), or a frozen model (frozen_model.h),
// which has a program and no model.
// `which`: the checkpoint of a run folder, "best" or "last"; "": best, if there is one. `overrides` change the
// configuration, also of the model: "router.eval_k=1". The model normalises as in training, unless an override of
// transforms.eval has a `normalize` step. Raises Error if there is no checkpoint, it is damaged or its weights do not
// fit the configuration; UsageError for invalid overrides.
LoadedModel load_model(const std::string& path, const std::string& which = "",
                       const std::vector<std::string>& overrides = {});

// The model of a checkpoint in memory. path: what errors and the result call it.
LoadedModel load_checkpoint(Checkpoint checkpoint, const std::string& path,
                            const std::vector<std::string>& overrides = {});

// The settings of the model, with the overrides, and what else a checkpoint says of it beside its weights. `model` and
// `program` are null.
LoadedModel described_model(const Checkpoint& checkpoint, const std::string& path,
                            const std::vector<std::string>& overrides);

// Raises Error for a dataset that has not as many classes as the one that the model was trained on.
void check_classes(const LoadedModel& loaded, const DataInfo& dataset);

// What a routing record says about the model: {"checkpoint", "step", "weights", "classes"}.
Json routing_source(const LoadedModel& loaded);

// image: [C,H,W] uint8. Returns the input of the model, [C,H,W] fp32 of loaded.shape. If the evaluation transforms do
// not produce that height and width (they have no resize), the image is first resized by its shorter side, antialiased,
// and cropped to the centre; a log line says so once for each model. Raises Error (without naming the image) if they
// still do not, or for another number of channels.
at::Tensor model_image(const LoadedModel& loaded, const at::Tensor& image);

// The program of the model (ImageModel::compile), to answer about this many images: with few, experts are not packed,
// and stay in the model's memory. weights: the type of the matrices, one of weight_type_names(), or "" for fp32. Null
// for a model that has none, unless `weights` asks for a type: then raises Error, saying why.
std::shared_ptr<const ProgramModel> compile_program(const LoadedModel& loaded, const std::string& weights = "",
                                                    int64_t images = std::numeric_limits<int64_t>::max());

// The same program, in that type. Raises Error where the model has none, saying why.
engine::Program make_program(const LoadedModel& loaded, const engine::WeightForm& form);

// Replaces the model by its program, to answer about this many images. A model that has none answers as it is; a frozen
// model stays in its type: raises UsageError for another one.
void compile(LoadedModel& loaded, int64_t images, const std::string& weights = "");

// The shape that images of `data` have after `transforms`.
ImageShape shape_after(const TransformPipeline& transforms, const DataInfo& data);

}  // namespace sparsight
