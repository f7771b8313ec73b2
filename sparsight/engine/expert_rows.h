// The rows of a routing's kept assignments, as the kernels of experts read them. Letters: moe/axes.md; R rows.
#pragma once

#include "sparsight/engine/routing.h"
#include "sparsight/kernels/experts/expert_mlp.h"

namespace sparsight::engine {

class ExpertRows {
 public:
  // The rows of the first `tokens_read` tokens of each image, with their gates.
  void set(const Routing& routing, int64_t tokens_read);
  // Rows in place: `count` rows of each of `experts` experts, whose offsets are given: row r is token r.
  void set_in_place(const int64_t* offsets, int64_t experts);

  // Valid until the next set().
  const cpu::ExpertRowNumbers& numbers() const { return numbers_; }
  int64_t rows() const { return numbers_.map.rows; }

 private:
  Array<bool> kept_;
  Array<int64_t> order_, offsets_, row_token_, token_rows_, token_offsets_;
  Array<float> gate_;
  cpu::ExpertRowNumbers numbers_;
};

}  // namespace sparsight::engine
