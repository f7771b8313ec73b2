// A model whose steps follow by hand: mlp without blocks on images [1,1,2], with the identity as its embedding. Layer
// norm of width 2 makes the features (1,-1) of an image (1,0), and (-1,1) of (0,1), up to 1e-6. Only the head's weight
// W [2,2] is trained, from 0; logits = W features.
#pragma once

#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include "sparsight/core/config.h"
#include "sparsight/io/weights.h"
#include "sparsight/models/make_model.h"
#include "sparsight/nn/init.h"
#include "sparsight/train/algorithm.h"
#include "sparsight/train/run_config.h"

#include <nlohmann/json.hpp>

namespace sparsight::test {

struct DomainCase {
  std::shared_ptr<ImageModel> model;
  AlgorithmContext context;
};

// A model of these settings with weights from seed 1, and its context. Images [image.channels,...].
inline DomainCase domain_case(const std::vector<std::string>& settings, const ImageShape& image) {
  Config config;
  for (const char* setting : {"loader.per_domain=true", "run.threads=1"}) config.set(setting);
  for (const std::string& setting : settings) config.set(setting);
  const Json resolved = resolve(config, config_sections());
  DomainCase made;
  made.model = make_model(resolved, image, PixelStatistics{});
  initialize(*made.model, 1);
  made.context = {
      resolved,  read_section<RunOptions>(resolved, "run"), read_section<TrainOptions>(resolved, "train"), {}, {},
      made.model};
  return made;
}

inline at::Tensor find_weight(const ImageModel& model, const std::string& name) {
  for (const auto& [other, tensor] : named_weights(model))
    if (other == name) return tensor;
  return {};
}

inline DomainCase hand_case(const std::vector<std::string>& optimizer = {"optimizer.name=sgd", "optimizer.lr=1",
                                                                         "optimizer.momentum=0",
                                                                         "optimizer.nesterov=false"}) {
  std::vector<std::string> settings{"model.name=mlp", "model.width=2", "model.depth=0", "moe.blocks=[]",
                                    "train.freeze=[\"embed\",\"norm\",\"head.bias\"]"};
  settings.insert(settings.end(), optimizer.begin(), optimizer.end());
  DomainCase made = domain_case(settings, {1, 1, 2, 2});
  const at::NoGradGuard no_grad;
  find_weight(*made.model, "embed.weight").copy_(at::eye(2));
  find_weight(*made.model, "embed.bias").zero_();
  find_weight(*made.model, "head.weight").zero_();
  find_weight(*made.model, "head.bias").zero_();
  return made;
}

inline std::shared_ptr<Algorithm> make_algorithm(const DomainCase& made, const std::string& name,
                                                 const Json& settings = Json::object()) {
  return algorithms().make(name, settings, "algorithm", made.context);
}

// Images of a domain, each (1,0) for +1 and (0,1) for -1.
inline Batch hand_batch(int64_t domain, const std::vector<int>& signs, const std::vector<int64_t>& labels) {
  Batch batch;
  std::vector<float> pixels;
  for (const int sign : signs) {
    pixels.push_back(sign > 0 ? 1.f : 0.f);
    pixels.push_back(sign > 0 ? 0.f : 1.f);
  }
  const auto count = static_cast<int64_t>(signs.size());
  batch.images = at::tensor(pixels).view({count, 1, 1, 2});
  batch.labels = at::tensor(labels);
  batch.domains = at::full({count}, domain, at::kLong);
  return batch;
}

inline UpdateResult update(Algorithm& algorithm, const std::vector<Batch>& batches, uint64_t step = 0) {
  Minibatches minibatches(batches);
  UpdateContext context;
  context.random = {5, step};
  return algorithm.update(minibatches, context);
}

inline Json mean_metrics(const UpdateResult& result) {
  Json line = Json::object();
  result.means.write_to(line);
  return line;
}

inline at::Tensor state_tensor(const Algorithm& algorithm, const std::string& name) {
  for (const auto& [other, tensor] : algorithm.state().tensors)
    if (other == name) return tensor;
  return {};
}

}  // namespace sparsight::test
