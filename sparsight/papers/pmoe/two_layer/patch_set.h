// Labelled samples as patches in memory, for models whose only input is patches. Letters: N samples, n patches per
// sample, d width of a patch.
// Differs from the paper: patches are pixels divided by 255, as in the authors' code, not unit vectors as in its theory
// (PatternModel's patches are unit vectors).
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/data/data_set.h"

namespace sparsight::pmoe {

struct PatchSet {
  at::Tensor table;     // [N*n,d] patches, sample by sample: fp32, fp64, or uint8 pixels (scaled to 0..1 by rows())
  at::Tensor labels;    // [N] int64
  at::Tensor position;  // [N] int64: index of the patch that determines the label; -1 if unknown
  int64_t patches = 0;  // n
  int64_t classes = 0;

  int64_t size() const { return labels.size(0); }
  int64_t width() const { return table.size(1); }
  // Rows of the table (ids: int64 of any shape), converted to `type`: [ids.numel(),d].
  at::Tensor rows(const at::Tensor& ids, at::ScalarType type) const;
  // A view of samples start .. start + count - 1; shares memory.
  PatchSet slice(int64_t start, int64_t count) const;
};

// The first `count` images of `data`, cut into square patches (values in channel, row, column order). `position` is the
// attribute "cell" if the data has one. Raises UsageError if the images vary in size, `side` does not divide them, or
// there are fewer than `count`.
PatchSet cut_into_patches(const DataSet& data, int64_t side, int64_t count);

}  // namespace sparsight::pmoe
