// Some images of another dataset, in a given order.
#pragma once

#include <string>
#include <vector>

#include "sparsight/data/data_set.h"

namespace sparsight {

class SubsetDataSet : public DataSet {
 public:
  SubsetDataSet(DataSetPtr base, std::vector<int64_t> indices);  // each 0 <= index < base->size()

  const DataInfo& info() const override { return base_->info(); }
  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  Sample get(int64_t index) const override { return base_->get(indices_.at(index)); }
  void check(int64_t index) const override { base_->check(indices_.at(index)); }
  int64_t label(int64_t index) const override { return base_->label(indices_.at(index)); }
  int64_t domain(int64_t index) const override { return base_->domain(indices_.at(index)); }
  std::vector<int64_t> labels(int64_t index) const override { return base_->labels(indices_.at(index)); }
  int64_t shard(int64_t index) const override { return base_->shard(indices_.at(index)); }
  std::string file(int64_t index) const override { return base_->file(indices_.at(index)); }

 private:
  DataSetPtr base_;
  std::vector<int64_t> indices_;
};

}  // namespace sparsight
