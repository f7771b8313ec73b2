// Concatenates several datasets. They must have the same classes, domains and channels.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sparsight/data/data_set.h"

namespace sparsight {

class ConcatDataSet : public DataSet {
 public:
  explicit ConcatDataSet(std::vector<DataSetPtr> parts);  // at least one; raises Error if they do not match

  const DataInfo& info() const override { return info_; }
  int64_t size() const override { return ends_.back(); }
  Sample get(int64_t index) const override;
  void check(int64_t index) const override;
  int64_t label(int64_t index) const override;
  int64_t domain(int64_t index) const override;
  std::vector<int64_t> labels(int64_t index) const override;
  int64_t shard(int64_t index) const override;
  std::string file(int64_t index) const override;

 private:
  std::pair<const DataSet&, int64_t> locate(int64_t index) const;

  std::vector<DataSetPtr> parts_;
  std::vector<int64_t> ends_;  // ends_[i]: images of parts 0 to i
  DataInfo info_;              // height and width are 0 if the parts differ
};

}  // namespace sparsight
