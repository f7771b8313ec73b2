#include "sparsight/data/transforms/corrupt.h"

#include <ATen/ops/empty_like.h>

#include "sparsight/data/corruptions/corruptions.h"
#include "sparsight/data/transforms/pixel_ops.h"

namespace sparsight {

void CorruptOptions::declare(OptionSet& set) {
  std::vector<std::string> kinds;
  for (const corruptions::Corruption& corruption : corruptions::all_corruptions()) kinds.emplace_back(corruption.name);
  set.choice("kind", &kind, kinds, "the corruption of ImageNet-C");
  set.integer("severity", &severity, {1, corruptions::kSeverities}, "how strong it is");
}

TransformOp make_corrupt(const CorruptOptions& options) {
  const corruptions::Corruption& corruption = corruptions::find_corruption(options.kind);
  return [&corruption, severity = options.severity](const at::Tensor& image, RandomStream& random) {
    const at::Tensor bytes = byte_planes(image, "corrupt");
    corruptions::Picture picture(bytes.size(0), bytes.size(1), bytes.size(2));
    const uint8_t* from = bytes.const_data_ptr<uint8_t>();
    for (size_t i = 0; i < picture.values.size(); ++i) picture.values[i] = static_cast<float>(from[i]) / 255;
    const corruptions::Picture result = corruptions::corrupted(corruption, picture, severity, random);
    at::Tensor corrupted = at::empty_like(bytes);
    auto* to = corrupted.data_ptr<uint8_t>();
    // The smallest excess over a level is rounding of the division by 255.
    for (size_t i = 0; i < result.values.size(); ++i) to[i] = static_cast<uint8_t>(result.values[i] * 255 + 1e-3F);
    return corrupted;
  };
}

}  // namespace sparsight
