#include "sparsight/models/image_model.h"

#include "sparsight/core/error.h"

namespace sparsight {

namespace {

void check_numbers(const at::Tensor& numbers, const char* name, int64_t images) {
  if (!numbers.defined()) return;
  if (numbers.scalar_type() != torch::kLong || numbers.sizes() != at::IntArrayRef({images}))
    fail(name, " is one int64 number for each image, [", images, "]; got ", numbers.scalar_type(), " ",
         numbers.sizes());
  if (images > 0 && numbers.min().item<int64_t>() < 0) fail(name, " holds a negative number");
}

}  // namespace

ModelOutput ImageModel::forward(const ModelInput& input) {
  const int64_t images = input.images.dim() > 0 ? input.images.size(0) : 0;
  check_numbers(input.info.image, "ImageInfo::image", images);
  check_numbers(input.info.group, "ImageInfo::group", images);
  return run(input);
}

void check_images(const at::Tensor& images, const ImageShape& shape) {
  if (images.dim() == 4 && images.size(1) == shape.channels && images.size(2) == shape.height &&
      images.size(3) == shape.width)
    return;
  fail("the model takes images of shape [B, ", shape.channels, ", ", shape.height, ", ", shape.width, "], got ",
       images.sizes(), "; resize them with the [transforms] section");
}

std::vector<PartCost> ImageModel::cost(const CostOptions&) const {
  std::vector<PartCost> parts;
  for (const auto& item : named_parameters()) {
    const std::string part = item.key().substr(0, item.key().find('.'));
    if (parts.empty() || parts.back().part != part) parts.push_back({part, {}});
    Cost cost = parameters_cost(item.value().numel());
    if (item.value().dim() >= 2) cost.multiply_adds = cost.parameters;
    cost.assumed = true;
    parts.back().cost = parts.back().cost + cost;
  }
  return parts;
}

at::Tensor as_logits(const at::Tensor& head) {
  return head.scalar_type() == torch::kDouble ? head : head.to(torch::kFloat);
}

int64_t head_outputs(int64_t classes) { return classes == 2 ? 1 : classes; }

at::Tensor two_class_logits(const at::Tensor& f) { return torch::cat({torch::zeros_like(f), f}, 1); }

}  // namespace sparsight
