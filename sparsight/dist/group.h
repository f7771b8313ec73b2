// Processes that train one model together: ranks 0 .. R-1. A process alone is a group of one, so that nobody asks
// whether there are others. Calls are collective: every rank makes the same ones in the same order, and each returns
// when the ranks that it needs have called it. They raise Error where another rank has ended, cannot be reached or is
// late.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight::dist {

// How many of something the ranks before this one have, and all ranks.
struct RankCounts {
  int64_t before = 0, all = 0;
};

class Group {
 public:
  virtual ~Group() = default;

  virtual int64_t rank() const { return 0; }
  virtual int64_t size() const { return 1; }  // R
  bool leads() const { return rank() == 0; }
  // How many times the launcher has started the group again after a rank had failed.
  virtual int64_t restarts() const { return 0; }

  // The training's step that this rank is at, which the errors of the group and of its subgroups name.
  virtual void set_step(int64_t) {}

  // One row per rank: [R, numel of part]. part: of the same number and type of elements everywhere.
  virtual at::Tensor all_gather(const at::Tensor& part);
  // Sends sent[r] rows to rank r, those of rank 0 first, and returns received[r] rows from it, in the same order.
  // rows: [sum of sent, ...].
  virtual at::Tensor all_to_all(const at::Tensor& rows, const std::vector<int64_t>& sent,
                                const std::vector<int64_t>& received);

  // The group of some of this one's ranks, which number them from 0 in this order. Every one of them calls it, with
  // the same name, which no other subgroup has that one of them is in.
  virtual std::shared_ptr<Group> subgroup(const std::string& name, const std::vector<int64_t>& ranks);

  // Overwrites the tensor with rank 0's. tensor: of the same shape and type everywhere, contiguous.
  virtual void broadcast(at::Tensor& tensor);

  // The bytes of each rank, of any lengths.
  std::vector<std::string> all_gather_bytes(const std::string& bytes);
  // Rank 0's.
  std::string broadcast(const std::string& bytes);
  RankCounts counts(int64_t own);
  bool any(bool value);
  void barrier() { any(false); }
};
using GroupPtr = std::shared_ptr<Group>;

// Raises Error on every rank, which names the first rank that differs from rank 0: the processes of a group were
// started with different settings. what: "configuration".
void check_same(Group& group, const std::string& what, const std::string& text);

}  // namespace sparsight::dist
