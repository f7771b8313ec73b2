// The batches that one update trains on.
#pragma once

#include <functional>
#include <vector>

#include "sparsight/data/sample.h"

namespace sparsight {

// In each of train.accumulate rounds a batch of every loader, in their order (with [loader] per_domain a batch of each
// domain). They are read when they are asked for, so that a long accumulation needs the memory of one batch.
class Minibatches {
 public:
  Minibatches(int64_t count, std::function<Batch()> read) : left_(count), read_(std::move(read)) {}
  explicit Minibatches(std::vector<Batch> batches);

  int64_t left() const { return left_; }
  Batch next();              // left() > 0
  std::vector<Batch> all();  // all that are left

 private:
  int64_t left_;
  std::function<Batch()> read_;
};

}  // namespace sparsight
