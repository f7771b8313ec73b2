#include "sparsight/dg/algorithms/rsc.h"

#include <ATen/ops/maximum.h>
#include <ATen/ops/quantile.h>
#include <torch/csrc/autograd/autograd.h>

#include "sparsight/eval/task_loss.h"

namespace sparsight {
namespace {

// [B]
at::Tensor true_class(const at::Tensor& x, const at::Tensor& labels) {
  return x.gather(1, labels.unsqueeze(1)).squeeze(1);
}

class Rsc : public DomainAlgorithm {
 public:
  Rsc(const RscOptions& options, const AlgorithmContext& context) : DomainAlgorithm(context, 1), options_(options) {}

 protected:
  at::Tensor objective(const DomainPass& pass, NamedMeans&) override {
    const at::Tensor &features = pass.output.features, &labels = pass.joined.labels;
    const at::Tensor mask = feature_mask(features.detach(), labels).to(features.scalar_type());
    return task_loss(classify(model(), features * mask), pass.joined);
  }

 private:
  // [B,D], of the head alone.
  at::Tensor feature_mask(at::Tensor features, const at::Tensor& labels) {
    features.requires_grad_(true);
    const at::Tensor logits = classify(model(), features);
    const at::Tensor gradient = torch::autograd::grad({true_class(logits, labels).sum()}, {features})[0];
    const at::NoGradGuard no_grad;
    const at::Tensor stay = rsc_feature_mask(gradient.to(at::kFloat), options_.drop_features);
    const at::Tensor muted = classify(model(), features * stay.to(features.scalar_type()));
    const at::Tensor fall = true_class(logits.softmax(1), labels) - true_class(muted.softmax(1), labels);
    return at::maximum(stay, rsc_image_mask(fall, options_.drop_images).unsqueeze(1));
  }

  RscOptions options_;
};

}  // namespace

void RscOptions::declare(OptionSet& set) {
  set.real("drop_features", &drop_features, {0, 1}, "share of the features that are muted").search = {
      "rsc_f_drop_factor", "U(0,0.5)"};
  set.real("drop_images", &drop_images, {0, 1}, "share of the images whose features are muted").search = {
      "rsc_b_drop_factor", "U(0,0.5)"};
}

at::Tensor rsc_feature_mask(const at::Tensor& gradient, double drop) {
  return gradient.lt(at::quantile(gradient, 1 - drop, 1, /*keepdim=*/true)).to(at::kFloat);
}

at::Tensor rsc_image_mask(const at::Tensor& fall, double drop) {
  return fall.lt(at::quantile(fall, 1 - drop)).to(at::kFloat);
}

std::shared_ptr<Algorithm> make_rsc(const RscOptions& options, const AlgorithmContext& context) {
  return std::make_shared<Rsc>(options, context);
}

}  // namespace sparsight
