// Labelled samples cut into patches, held in memory: for models that see patches and nothing else. Letters: N samples
// of n patches, d numbers each.
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/data/data_set.h"

namespace sparsight::pmoe {

struct PatchSet {
  at::Tensor table;     // [N*n,d] patches, sample by sample: fp32 or fp64, or uint8 pixels, which stand for 0..1
  at::Tensor labels;    // [N] int64
  at::Tensor place;     // [N] int64: which patch makes the label; -1 where that is not known
  int64_t patches = 0;  // n
  int64_t classes = 0;

  int64_t size() const { return labels.size(0); }
  int64_t width() const { return table.size(1); }
  // Rows of the table (ids: int64 of any shape) as numbers: [ids.numel(),d] of `type`.
  at::Tensor rows(const at::Tensor& ids, at::ScalarType type) const;
  // Samples start .. start + count - 1; they share memory with this.
  PatchSet slice(int64_t start, int64_t count) const;
};

// The first `count` images of `data`, cut into square patches (numbers in the order channel, row, column). The place is
// the attribute "cell", where the data has it. Raises UsageError where the images vary in size or `side` does not
// divide them, or where there are fewer.
PatchSet cut_into_patches(const DataSet& data, int64_t side, int64_t count);

}  // namespace sparsight::pmoe
