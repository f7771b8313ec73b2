// Whether other programs take the cores that our threads need, judged by how long threads that were ready to run had to
// wait for a core.
#pragma once

#include <cstdint>
#include <map>

namespace sparsight::cpu {

// What a thread has done since it began, in nanoseconds.
struct ThreadTimes {
  int64_t running = 0;
  int64_t delayed = 0;  // ready to run, but waiting for a core
};

using AllThreadTimes = std::map<int, ThreadTimes>;  // by thread number

// The times of this process's threads. Empty where the system does not count them.
AllThreadTimes thread_times();

// A thread is judged whenever it has been running or delayed for 30 ms since it was last judged. Delayed for more than
// 20 % of that: the machine is busy. It is so until no thread was delayed for more than 5 % in 5 judgements in a row.
// One preemption of a few milliseconds changes nothing.
class ContentionJudge {
 public:
  // Returns whether the machine is busy.
  bool update(const AllThreadTimes& now);

 private:
  AllThreadTimes judged_;  // the times when a thread was last judged
  int calm_ = 0;           // judgements in a row without delays
  bool busy_ = false;
};

}  // namespace sparsight::cpu
