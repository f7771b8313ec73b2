#include "sparsight/kernels/threads/follower.h"

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace sparsight::cpu {

#if defined(__linux__)

void Follower::begin() {
  if (sched_getaffinity(0, sizeof allowed_, &allowed_) == 0) thread_ = static_cast<int>(syscall(SYS_gettid));
}

void Follower::lead(bool together) {
  const int core = together ? sched_getcpu() : -1;
  if (core == core_ || thread_ == 0 || core >= CPU_SETSIZE) return;
  cpu_set_t cores = allowed_;
  if (core >= 0) {
    CPU_ZERO(&cores);
    CPU_SET(static_cast<size_t>(core), &cores);
  }
  if (sched_setaffinity(thread_, sizeof cores, &cores) == 0) core_ = core;
}

#else

void Follower::begin() {}
void Follower::lead(bool) {}

#endif

}  // namespace sparsight::cpu
