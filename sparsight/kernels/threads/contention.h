// Whether other programs take the cores that our threads need: threads that were ready to run had to wait for a core,
// and other programs have such threads. Without the second, threads of our own, as those that load data, are in the
// way.
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
// 20 % of that: threads are delayed. It is so until no thread was delayed for more than 5 % in 5 judgements in a row.
// One preemption of a few milliseconds changes nothing.
class ContentionJudge {
 public:
  // Returns whether threads are delayed.
  bool update(const AllThreadTimes& now);

 private:
  AllThreadTimes judged_;  // the times when a thread was last judged
  int calm_ = 0;           // judgements in a row without delays
  bool busy_ = false;
};

// How many threads of other programs, on the whole machine, run or are ready to. 0 where the system does not say.
int64_t other_ready_threads();

// Whether other programs want processors, on the average of about the last four calls.
class CrowdJudge {
 public:
  // Returns whether they want all: they have threads for at least three quarters. It is so until they have threads for
  // less than half.
  bool update(int64_t others, int64_t processors);
  // Whether they want any: at least 0.4 threads were ready. It is so until there are less than 0.2.
  bool has_others() const { return has_others_; }

 private:
  double average_ = 0;
  bool crowded_ = false, has_others_ = false;
};

}  // namespace sparsight::cpu
