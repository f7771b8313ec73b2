// The gradients of a step whose minibatches are shared out over the ranks of a group, summed with the bits of one
// process that adds them up one after the other: minibatch 0, 1, 2, ... of the step, of which rank r has r, R + r, 2R +
// r, ...
//
// After each round of minibatches every rank sends each other one the part of its gradients that the other one sums up,
// which adds the parts of all ranks in the order of ranks (a reduce-scatter by all-to-all); at the end of the step all
// ranks gather the sums. A step of one round moves as many bytes as a ring's all-reduce.
#pragma once

#include <vector>

#include "sparsight/dist/group.h"

namespace sparsight::dist {

class GradientSum {
 public:
  // parameters: of one floating type. In a group of one their gradients stay where autograd adds them up.
  GradientSum(GroupPtr group, std::vector<at::Tensor> parameters);

  // After the backward pass of each minibatch.
  void add();
  // The same where a rank has the gradients of several minibatches, one after the other in the order of the step:
  // [minibatches][parameters], undefined where there is none.
  void add(const std::vector<std::vector<at::Tensor>>& gradients);
  // After the last one: the gradients are those of the whole step. A parameter without gradients in all minibatches has
  // none.
  void finish();

 private:
  struct Exchanged {
    at::Tensor parts;    // [R, part]: this rank's part of the gradients of all
    at::Tensor present;  // [R, P] bytes: which gradients there are
  };
  Exchanged exchange(const std::vector<at::Tensor>& gradients) const;
  void sum_up(const Exchanged& exchanged, int64_t rank);

  GroupPtr group_;
  std::vector<at::Tensor> parameters_;
  std::vector<int64_t> offset_;  // [P+1] of the parameters in all numbers
  int64_t part_ = 0;             // numbers that a rank sums up
  at::Tensor sum_;               // [part]
  std::vector<bool> seen_;       // [P]: some minibatch had a gradient
};

}  // namespace sparsight::dist
