// A thread that can be kept on the core of another one. While other programs want all processors, two threads on a core
// of their own get as much as one thread on each of two shared cores, where either is stopped for milliseconds in the
// midst of a task, and the other waits for it. Where threads cannot be bound to cores (not on Linux), nothing happens.
#pragma once

#include <atomic>
#if defined(__linux__)
#include <sched.h>
#endif

namespace sparsight::cpu {

class Follower {
 public:
  // On the thread itself, before it is led.
  void begin();

  // On the thread that leads, one at a time: moves the follower to the core of the caller, or back to all that it may
  // use.
  void lead(bool together);

 private:
#if defined(__linux__)
  std::atomic<int> thread_{0};  // number of the follower, set after `allowed_`
  cpu_set_t allowed_{};
  int core_ = -1;  // where it is kept; -1: anywhere
#endif
};

}  // namespace sparsight::cpu
