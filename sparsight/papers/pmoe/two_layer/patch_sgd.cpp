#include "sparsight/papers/pmoe/two_layer/patch_sgd.h"

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/moe/routers/router_logits.h"
#include "sparsight/ops/grouped_linear.h"
#include "sparsight/papers/pmoe/two_layer/router_sgd.h"

namespace sparsight::pmoe {
namespace {

constexpr int64_t kChunk = 256;  // samples routed or evaluated at once

// [B] -> [B,n]: table rows of the samples' patches.
at::Tensor patch_rows(const PatchSet& data, const at::Tensor& samples) {
  return samples.unsqueeze(1) * data.patches + at::arange(data.patches, at::kLong);
}

// patches: [B*n,d].
Routing route(const PatchChoiceRouter& router, const at::Tensor& patches, int64_t images) {
  return route_patch_choice(router_logits(patches, router.weight), {}, images, router.options());
}

}  // namespace

void PatchSgdOptions::declare(OptionSet& set) {
  set.real("lr", &lr, {0, 1e6}, "learning rate");
  set.integer("batch", &batch, {1, 1000000}, "batch size; the last batch of an epoch may be smaller");
  set.integer("epochs", &epochs, {1, 1000000}, "maximum number of epochs");
  set.choice("stop", &stop, {"zero_error", "epochs"},
             "stop after the first epoch without a training error, or after all epochs");
  set.real("router_lr", &router_lr, {0, 1e6}, "learning rate of separately trained routers");
  set.integer("router_batch", &router_batch, {1, 1000000}, "batch size for separately trained routers");
  set.integer("router_epochs", &router_epochs, {0, 1000000}, "epochs for separately trained routers");
  set.integer("router_samples", &router_samples, {0, 1000000000},
              "train separate routers on the first so many samples; 0: on all");
}

// The experts' input in a step: B samples, E experts, R = E*B*l rows, grouped by expert, then by sample.
struct PatchSgd::Taken {
  at::Tensor patches;  // [B*n,d] all patches; undefined if the router is frozen
  at::Tensor token;    // [R] index into `patches` of each row
  at::Tensor rows;     // [R,d]
  at::Tensor gate;     // [E,B,l]; undefined: all 1
};

PatchSgd::PatchSgd(std::shared_ptr<PatchCnn> model, const PatchSet& data, const PatchSgdOptions& options, uint64_t seed)
    : model_(std::move(model)), parts_(model_->parts()), data_(data), options_(options), seed_(seed) {
  const ConvExpertsOptions& experts = parts_.experts->options();
  if (parts_.experts->w1.size(1) != data_.width() || parts_.experts->b1.defined() || experts.activation != "relu" ||
      experts.output == "trained")
    fail_usage(
        "training on patches in memory needs [experts] filters that cover whole patches, activation = \"relu\", no "
        "bias "
        "and output = \"normal\" or \"signs\"; use `train` for other models");
  if (parts_.router && parts_.router->options().gate == "softmax_topl")
    fail_usage(
        "training on patches in memory supports [router] gate = \"ones\" and \"topl_softmax\", got "
        "\"softmax_topl\"; use `train`");
  if (parts_.router && parts_.router->options().patches > data_.patches)
    fail_usage("[router] patches = ", parts_.router->options().patches, " but a sample has ", data_.patches,
               " patches; lower it");
}

void PatchSgd::train_routers() {
  const torch::NoGradGuard no_grad;
  if (!parts_.router || parts_.router->weight.size(0) != data_.classes)
    fail_usage("separately trained routers need one expert for each of the ", data_.classes,
               " classes; set [moe] experts = ", data_.classes);
  at::Tensor& weight = parts_.router->weight;  // [E,d]
  const int64_t samples = options_.router_samples > 0 ? std::min(options_.router_samples, data_.size()) : data_.size(),
                pairs = (data_.classes + 1) / 2;
  const at::Tensor labels = data_.labels.narrow(0, 0, samples);
  at::Tensor sums = at::empty({samples, data_.width()}, weight.options());  // over each sample's patches
  for (int64_t first = 0; first < samples; first += kChunk) {
    const int64_t count = std::min(kChunk, samples - first);
    const at::Tensor ids = at::arange(first, first + count, at::kLong);
    sums.narrow(0, first, count)
        .copy_(data_.rows(patch_rows(data_, ids), weight.scalar_type())
                   .view({count, data_.patches, data_.width()})
                   .sum(1));
  }
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const int64_t one = 2 * pair, other = one + 1 < data_.classes ? one + 1 : 0;
    const at::Tensor members = ((labels == one) | (labels == other)).nonzero().squeeze(1);
    const at::Tensor sign = ((labels == one).to(weight.dtype()) * 2 - 1).unsqueeze(1);  // [N,1]
    const int64_t epoch_steps = (members.size(0) + options_.router_batch - 1) / options_.router_batch;
    train_router_pair(weight[one], other == one + 1 ? weight[other] : at::Tensor(),
                      (sums * sign).index_select(0, members),
                      {options_.router_lr, options_.router_batch, options_.router_epochs * epoch_steps,
                       [&](int64_t epoch) { return RandomStream(seed_, "patch_sgd.routers", epoch * pairs + pair); }});
  }
  frozen_ = at::Tensor();
}

PatchSgd::Taken PatchSgd::take(const at::Tensor& samples) const {
  const at::ScalarType type = parts_.experts->w1.scalar_type();
  Taken taken;
  if (frozen_.defined()) {
    taken.rows = data_.rows(frozen_.index_select(0, samples).transpose(0, 1), type);
    return taken;
  }
  taken.patches = data_.rows(patch_rows(data_, samples), type);
  if (!parts_.router) {
    taken.rows = taken.patches;
    return taken;
  }
  const Routing routing = route(*parts_.router, taken.patches, samples.size(0));
  taken.token = routing.token;
  taken.rows = taken.patches.index_select(0, routing.token);
  taken.gate = routing.gate.view({routing.experts, samples.size(0), -1});
  return taken;
}

HeadLoss PatchSgd::step(const at::Tensor& samples) {
  const Taken taken = take(samples);
  at::Tensor& w1 = parts_.experts->w1;  // [E,d,F]
  const int64_t images = samples.size(0), experts = w1.size(0), each = taken.rows.size(0) / (experts * images);
  const at::Tensor offsets = at::arange(experts + 1, at::kLong) * (images * each);
  at::Tensor hidden = grouped_linear_forward(taken.rows, offsets, w1, {});  // [R,F]
  HeadLoss head = two_layer_head({parts_.experts->w2, taken.gate, data_.labels.index_select(0, samples),
                                  static_cast<double>(model_->divisor(each, data_.patches))},
                                 hidden);
  const at::Tensor grad_w1 =
      grouped_linear_backward(hidden, taken.rows, offsets, w1, {.rows = false, .bias = false}).weight;
  if (taken.gate.defined() && parts_.router->options().gate == "topl_softmax") {  // equation 26
    const at::Tensor grad_score = taken.gate * (head.grad_gate - (taken.gate * head.grad_gate).sum(2, true));
    at::Tensor by_patch = at::zeros({experts, taken.patches.size(0)}, hidden.options());
    by_patch.scatter_(1, taken.token.view({experts, -1}), grad_score.view({experts, -1}));
    parts_.router->weight.sub_(by_patch.mm(taken.patches), options_.lr);
  }
  w1.sub_(grad_w1, options_.lr);
  return head;
}

PatchEpoch PatchSgd::train_epoch() {
  const torch::NoGradGuard no_grad;
  if (parts_.router && parts_.router->options().gate == "ones" && !frozen_.defined()) {
    std::vector<at::Tensor> chosen;
    for (int64_t first = 0; first < data_.size(); first += kChunk) {
      const int64_t count = std::min(kChunk, data_.size() - first);
      const Routing routing = route_patches(*model_, data_, first, count);
      chosen.push_back((routing.token + first * data_.patches).view({routing.experts, count, -1}).transpose(0, 1));
    }
    frozen_ = at::cat(chosen);
  }
  PatchEpoch result;
  result.epoch = ++epoch_;
  const at::Tensor order = shuffled(at::arange(data_.size(), at::kLong), RandomStream(seed_, "patch_sgd", epoch_));
  for (int64_t first = 0; first < data_.size(); first += options_.batch) {
    const HeadLoss batch = step(order.narrow(0, first, std::min(options_.batch, data_.size() - first)));
    result.loss += batch.loss;
    result.wrong += batch.wrong;
  }
  result.loss /= static_cast<double>(data_.size());
  return result;
}

std::vector<PatchEpoch> PatchSgd::train(const std::function<void(const PatchEpoch&)>& on_epoch) {
  std::vector<PatchEpoch> epochs;
  while (std::ssize(epochs) < options_.epochs) {
    epochs.push_back(train_epoch());
    if (on_epoch) on_epoch(epochs.back());
    if (options_.stop == "zero_error" && epochs.back().wrong == 0) break;
  }
  return epochs;
}

Routing route_patches(PatchCnn& model, const PatchSet& data, int64_t first, int64_t count) {
  const torch::NoGradGuard no_grad;
  const PatchChoiceRouter* router = model.parts().router;
  if (!router) return {};
  const at::Tensor samples = at::arange(first, first + count, at::kLong);
  Routing routing = route(*router, data.rows(patch_rows(data, samples), router->weight.scalar_type()), count);
  routing.layout = {count, data.patches};
  return routing;
}

at::Tensor patch_outputs(PatchCnn& model, const PatchSet& data) {
  const torch::NoGradGuard no_grad;
  const PatchCnnParts parts = model.parts();
  std::vector<at::Tensor> outputs;
  for (int64_t first = 0; first < data.size(); first += kChunk) {
    const int64_t count = std::min(kChunk, data.size() - first), experts = parts.experts->w1.size(0);
    const at::Tensor samples = at::arange(first, first + count, at::kLong);
    at::Tensor rows = data.rows(patch_rows(data, samples), parts.experts->w1.scalar_type()), gate;
    if (parts.router) {
      const Routing routing = route(*parts.router, rows, count);
      rows = rows.index_select(0, routing.token);
      gate = routing.gate.view({experts, count, -1, 1});
    }
    const int64_t each = rows.size(0) / (experts * count);
    at::Tensor output = parts.experts->forward(rows, at::arange(experts + 1, at::kLong) * (count * each))
                            .view({experts, count, each, -1});
    if (gate.defined()) output = output * gate;
    outputs.push_back(output.sum(at::IntArrayRef{0, 2}) / model.divisor(each, data.patches));
  }
  return at::cat(outputs);
}

double patch_accuracy(const at::Tensor& outputs, const at::Tensor& labels, double threshold) {
  if (labels.numel() == 0) return 0;
  at::Tensor right = outputs.size(1) == 1
                         ? at::where(labels == 1, outputs.select(1, 0) > threshold, outputs.select(1, 0) < threshold)
                         : outputs.argmax(1) == labels;
  return right.to(at::kDouble).mean().item<double>();
}

}  // namespace sparsight::pmoe
