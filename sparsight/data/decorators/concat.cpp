#include "sparsight/data/decorators/concat.h"

#include <algorithm>

#include "sparsight/core/error.h"

namespace sparsight {

ConcatDataSet::ConcatDataSet(std::vector<DataSetPtr> parts) : parts_(std::move(parts)) {
  SPARSIGHT_CHECK(!parts_.empty());
  info_ = parts_.front()->info();
  int64_t end = 0;
  for (const DataSetPtr& part : parts_) {
    const DataInfo& other = part->info();
    if (other.classes != info_.classes || other.domains != info_.domains || other.channels != info_.channels)
      fail("datasets that are joined must have the same classes, domains and channels; ", info_.name, " has ",
           info_.classes.size(), " classes, ", info_.domains.size(), " domains and ", info_.channels, " channels, ",
           other.name, " has ", other.classes.size(), ", ", other.domains.size(), " and ", other.channels,
           " or other names");
    if (other.multi_label != info_.multi_label)
      fail("datasets that are joined must all have one label per image, or all several; ", info_.name, " and ",
           other.name, " differ");
    if (other.height != info_.height || other.width != info_.width) info_.height = info_.width = 0;
    ends_.push_back(end += part->size());
  }
}

std::pair<const DataSet&, int64_t> ConcatDataSet::locate(int64_t index) const {
  SPARSIGHT_CHECK(index >= 0 && index < size());
  const size_t part = std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin();
  return {*parts_[part], part == 0 ? index : index - ends_[part - 1]};
}

Sample ConcatDataSet::get(int64_t index) const {
  const auto [part, inner] = locate(index);
  return part.get(inner);
}

void ConcatDataSet::check(int64_t index) const {
  const auto [part, inner] = locate(index);
  part.check(inner);
}

int64_t ConcatDataSet::label(int64_t index) const {
  const auto [part, inner] = locate(index);
  return part.label(inner);
}

int64_t ConcatDataSet::domain(int64_t index) const {
  const auto [part, inner] = locate(index);
  return part.domain(inner);
}

std::vector<int64_t> ConcatDataSet::labels(int64_t index) const {
  const auto [part, inner] = locate(index);
  return part.labels(inner);
}

int64_t ConcatDataSet::shard(int64_t index) const {
  const auto [part, inner] = locate(index);
  return part.shard(inner);
}

std::string ConcatDataSet::file(int64_t index) const {
  const auto [part, inner] = locate(index);
  return part.file(inner);
}

}  // namespace sparsight
