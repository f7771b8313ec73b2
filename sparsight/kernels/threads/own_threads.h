// A pool of a fixed number of threads, which wait asleep. They share cores in pairs while other programs want all
// processors (machine_load.h).
#pragma once

#include <algorithm>

#include "sparsight/kernels/threads/machine_load.h"
#include "sparsight/kernels/threads/task_team.h"
#include "sparsight/kernels/threads/threads.h"

namespace sparsight::cpu {

class OwnThreads final : public Threads {
 public:
  explicit OwnThreads(int64_t count) : count_(std::max<int64_t>(1, count)) {
    if (count_ > 1) watch_machine();
  }

  int64_t count() const override { return count_; }
  bool inside() const override { return TaskTeam::inside(); }
  void run(int64_t threads, FunctionRef<void()> work) override { team_.run(threads, work, machine_is_crowded()); }

 private:
  int64_t count_;
  TaskTeam team_;
};

}  // namespace sparsight::cpu
