// Threads that wait asleep for work. A team of OpenMP waits at the end of its work for all of its threads, also for one
// that the system has not let run since it was woken, although others have done its tasks. This team waits only for
// threads that have begun.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>

#include "sparsight/core/function_ref.h"

namespace sparsight::cpu {

class TaskTeam {
 public:
  TaskTeam() = default;
  ~TaskTeam();  // waits for its threads to end
  TaskTeam(const TaskTeam&) = delete;
  TaskTeam& operator=(const TaskTeam&) = delete;

  // Does what Threads::run() does; alone on this thread if the team is in use. pair_up: threads share cores in pairs
  // (follower.h).
  void run(int64_t threads, FunctionRef<void()> work, bool pair_up);

  // Whether the caller is the work of any team.
  static bool inside();

 private:
  struct Member;

  void start(int64_t members);
  void lead(const std::atomic<Member*>& member) const;
  void serve(Member& self);
  void call(FunctionRef<void()> work);

  std::atomic_flag in_use_;
  std::atomic<Member*> first_ = nullptr;
  std::atomic<bool> pairs_ = false;
  std::mutex mutex_;  // of what follows
  std::condition_variable wake_, ended_;
  const FunctionRef<void()>* work_ = nullptr;
  int64_t places_ = 0, running_ = 0;
  bool stops_ = false;
  std::exception_ptr error_;
};

}  // namespace sparsight::cpu
