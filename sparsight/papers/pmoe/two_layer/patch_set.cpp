#include "sparsight/papers/pmoe/two_layer/patch_set.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_select.h>

#include "sparsight/core/error.h"

namespace sparsight::pmoe {

at::Tensor PatchSet::rows(const at::Tensor& ids, at::ScalarType type) const {
  const at::Tensor chosen = table.index_select(0, ids.reshape({-1}));
  return table.scalar_type() == at::kByte ? chosen.to(type).mul_(1.0 / 255) : chosen.to(type);
}

PatchSet PatchSet::slice(int64_t start, int64_t count) const {
  SPARSIGHT_CHECK(start >= 0 && start + count <= size());
  return {table.narrow(0, start * patches, count * patches), labels.narrow(0, start, count),
          position.narrow(0, start, count), patches, classes};
}

PatchSet cut_into_patches(const DataSet& data, int64_t side, int64_t count) {
  const DataInfo& info = data.info();
  if (info.height == 0 || side <= 0 || info.height % side != 0 || info.width % side != 0)
    fail_usage("patches of ", side, "x", side, " do not divide images of ", info.height, "x", info.width, " (",
               info.name, "); choose a divisor of both sides");
  if (count > data.size()) fail_usage(info.name, " has ", data.size(), " images, ", count, " were requested");
  const auto cell = std::find(info.attributes.begin(), info.attributes.end(), "cell");
  PatchSet set;
  const int64_t down = info.height / side, across = info.width / side, width = info.channels * side * side;
  set.patches = down * across;
  set.classes = std::ssize(info.classes);
  set.table = at::empty({count * set.patches, width}, at::kByte);
  set.labels = at::empty({count}, at::kLong);
  set.position = at::full({count}, -1, at::kLong);
  auto* const labels = set.labels.mutable_data_ptr<int64_t>();
  auto* const positions = set.position.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    const Sample sample = data.get(i);
    set.table.narrow(0, i * set.patches, set.patches)
        .view({down, across, info.channels, side, side})
        .copy_(sample.image.view({info.channels, down, side, across, side}).permute({1, 3, 0, 2, 4}));
    labels[i] = sample.label;
    if (cell != info.attributes.end())
      positions[i] = static_cast<int64_t>(sample.attributes[cell - info.attributes.begin()]);
  }
  return set;
}

}  // namespace sparsight::pmoe
