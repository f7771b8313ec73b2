// A list of image transforms, as written in TOML: [{op = "resize", size = [32, 32]}, {op = "flip"}, ...].
//
// The result is pixels in 0..1, with or without a `normalize` step: the model normalises, by statistics(). Steps after
// `normalize` get normalised values, and the normalisation is inverted at the end of the list.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sparsight/data/transforms/normalize.h"

namespace sparsight {

class TransformPipeline {
 public:
  // A pipeline of no steps: uint8 0..255 becomes fp32 0..1.
  TransformPipeline() = default;
  // `steps`: a list of tables, each with `op` and the settings of that op. `where` names the list in errors
  // ("transforms.train"). Raises UsageError for unknown ops and settings, and for a second `normalize`.
  TransformPipeline(const Json& steps, const std::string& where);

  // image: [C,H,W] uint8 of 0..255, or other numbers, which are pixels in 0..1 and never clamped. Returns
  // [C,H,W] fp32, contiguous. Safe to call from several threads.
  at::Tensor operator()(const at::Tensor& image, ViewRandom& random) const;

  // The same for bytes without tensors, to pixels [channels,height,width]. Nothing where a step has no such form.
  std::optional<engine::Preprocessing> compile(int64_t channels, int64_t height, int64_t width) const;

  // Those of the list's `normalize` step; empty if it has none.
  const PixelStatistics& statistics() const { return statistics_; }

 private:
  std::vector<TransformOp> ops_;
  PixelStatistics statistics_;
};

}  // namespace sparsight
