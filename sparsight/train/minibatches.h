// The batches that one update trains on.
#pragma once

#include <functional>
#include <vector>

#include "sparsight/data/sample.h"

namespace sparsight {

// One batch of every loader in order (with [loader] per_domain: one batch per domain), train.accumulate times. Batches
// are read on demand, so that a long accumulation needs memory for only one batch.
class Minibatches {
 public:
  Minibatches(int64_t count, std::function<Batch()> read) : left_(count), read_(std::move(read)) {}
  explicit Minibatches(std::vector<Batch> batches);

  int64_t left() const { return left_; }
  Batch next();              // requires left() > 0
  std::vector<Batch> all();  // all remaining

 private:
  int64_t left_;
  std::function<Batch()> read_;
};

}  // namespace sparsight
