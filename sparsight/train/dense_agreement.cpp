#include "sparsight/train/dense_agreement.h"

#include <cstdio>

#include "sparsight/core/error.h"
#include "sparsight/io/weight_names.h"
#include "sparsight/io/weights.h"
#include "sparsight/models/adapt_weights.h"
#include "sparsight/models/make_model.h"
#include "sparsight/nn/init.h"

namespace sparsight {

DenseAgreement dense_agreement(ImageModel& model, const Json& resolved, const ImageShape& shape,
                               const std::string& path, const at::Tensor& images) {
  Json config = resolved;
  config["moe"]["blocks"] = config["moe"]["layer"] = Json::array();
  const auto dense = make_model(config, shape, model.pixel_statistics());
  initialize(*dense, 0);  // a LayerScale that neither has, say
  LoadOptions options;
  options.adapt = weight_adapter(*dense);
  load_weights(*dense, read_weights(path), options);
  load_weights(*dense, named_weights(model));
  const torch::NoGradGuard no_grad;
  const at::Tensor ours = model.forward({images}).logits, theirs = dense->forward({images}).logits;
  return {images.size(0), (ours.argmax(1) == theirs.argmax(1)).sum().item<int64_t>(),
          (ours - theirs).abs().max().item<double>()};
}

std::string to_text(const DenseAgreement& agreement) {
  char text[160];
  std::snprintf(text, sizeof(text), "equal predictions for %.1f %% of %lld images, logits differ by at most %.2g",
                100.0 * static_cast<double>(agreement.equal) / static_cast<double>(agreement.images),
                static_cast<long long>(agreement.images), agreement.max_logit_difference);
  return text;
}

}  // namespace sparsight
