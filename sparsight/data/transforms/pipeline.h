// A list of image transforms, as written in TOML: [{op = "resize", size = [32, 32]}, {op = "flip"}, ...].
#pragma once

#include <string>
#include <vector>

#include "sparsight/data/transforms/transform_op.h"

namespace sparsight {

class TransformPipeline {
 public:
  // No steps: uint8 0..255 becomes fp32 0..1.
  TransformPipeline() = default;
  // `steps`: a list of tables, each with `op` and the settings of that op. `where` names the list in errors
  // ("transforms.train"). Raises UsageError for unknown ops and settings.
  TransformPipeline(const Json& steps, const std::string& where);

  // image: [C,H,W] uint8. Returns [C,H,W] fp32, contiguous. Safe to call from several threads.
  at::Tensor operator()(const at::Tensor& image, RandomStream& random) const;

 private:
  std::vector<TransformOp> ops_;
};

}  // namespace sparsight
