// A group whose ranks have parts of the experts ([dist] exact), for gradients with the bits of one process. An expert's
// gradients from the tokens of each rank are kept apart, until GradientSum adds them up in the order of ranks: autograd
// would add them in its own order.
#pragma once

#include <map>
#include <vector>

#include "sparsight/dist/group.h"

namespace sparsight::dist {

class ExactParts final : public Group {
 public:
  explicit ExactParts(GroupPtr group) : group_(std::move(group)) {}

  int64_t rank() const override { return group_->rank(); }
  int64_t size() const override { return group_->size(); }
  int64_t restarts() const override { return group_->restarts(); }
  void set_step(int64_t step) override { group_->set_step(step); }
  at::Tensor all_gather(const at::Tensor& part) override { return group_->all_gather(part); }
  at::Tensor all_to_all(const at::Tensor& rows, const std::vector<int64_t>& sent,
                        const std::vector<int64_t>& received) override {
    return group_->all_to_all(rows, sent, received);
  }
  std::shared_ptr<Group> subgroup(const std::string& name, const std::vector<int64_t>& ranks) override {
    return group_->subgroup(name, ranks);
  }
  using Group::broadcast;
  void broadcast(at::Tensor& tensor) override { group_->broadcast(tensor); }

  // The gradient of a parameter from the tokens of rank `rank`.
  void add(const at::Tensor& parameter, int64_t rank, const at::Tensor& gradient);
  // Those added since the last call, [ranks][parameters]; undefined where there was none.
  std::vector<std::vector<at::Tensor>> take(const std::vector<at::Tensor>& parameters);

 private:
  GroupPtr group_;
  std::map<const void*, std::vector<at::Tensor>> gradients_;  // parameter -> by rank
};

}  // namespace sparsight::dist
