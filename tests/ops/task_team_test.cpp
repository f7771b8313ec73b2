#include "sparsight/ops/cpu/task_team.h"

#include <atomic>
#include <chrono>
#include <semaphore>
#include <set>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

namespace sparsight::task_team_test {
namespace {

using namespace std::chrono_literals;
using cpu::run_on_team;

// Takes numbers 0 .. count-1 until none is left; returns how many were taken.
int64_t sum_of_taken(int64_t threads, int64_t count) {
  std::atomic<int64_t> next{0}, taken{0};
  run_on_team(threads, [&] {
    while (next++ < count) ++taken;
  });
  return taken;
}

}  // namespace

// Also where threads begin late or not at all: tens of thousands of short runs.
TEST(TaskTeam, EachTaskIsTakenOnceHoweverManyThreads) {
  for (const int64_t threads : {1, 2, 4})
    for (int64_t run = 0; run < 20000; ++run)
      ASSERT_EQ(sum_of_taken(threads, run % 7), run % 7) << threads << " threads, run " << run;
}

// The first call waits until a second one runs beside it.
TEST(TaskTeam, OtherThreadsHelp) {
  std::atomic<int> calls{0};
  std::binary_semaphore second{0};
  bool met = false;
  run_on_team(2, [&] {
    if (calls++ == 0)
      met = second.try_acquire_for(30s);
    else
      second.release();
  });
  EXPECT_TRUE(met);
}

// The caller ends first, and waits for the call that has begun.
TEST(TaskTeam, ReturnsWhenAllThatBeganHaveEnded) {
  const auto caller = std::this_thread::get_id();
  std::binary_semaphore began{0};
  std::atomic<bool> ended{false};
  run_on_team(2, [&] {
    if (std::this_thread::get_id() == caller) {
      ASSERT_TRUE(began.try_acquire_for(30s));
    } else {
      began.release();
      std::this_thread::sleep_for(20ms);
      ended = true;
    }
  });
  EXPECT_TRUE(ended);
}

TEST(TaskTeam, RunsAloneInsideItsOwnWorkAndBesideAnotherCaller) {
  std::atomic<int64_t> inner{0};
  run_on_team(2, [&] { inner += sum_of_taken(2, 10); });
  EXPECT_GE(inner, 10);
  std::atomic<int64_t> all{0};
  const auto caller = [&] {
    for (int run = 0; run < 2000; ++run) all += sum_of_taken(3, 5);
  };
  std::thread one(caller), two(caller);
  one.join(), two.join();
  EXPECT_EQ(all, 2 * 2000 * 5);
}

// Errors of the caller and of another thread; the next run is as any.
TEST(TaskTeam, RethrowsWhatACallThrows) {
  const auto caller = std::this_thread::get_id();
  EXPECT_THROW(run_on_team(2, [] { throw std::runtime_error("in any"); }), std::runtime_error);
  std::binary_semaphore thrown{0};
  const auto throw_elsewhere = [&] {
    if (std::this_thread::get_id() == caller) {
      ASSERT_TRUE(thrown.try_acquire_for(30s));
    } else {
      thrown.release();
      throw std::runtime_error("in the other");
    }
  };
  EXPECT_THROW(run_on_team(2, throw_elsewhere), std::runtime_error);
  EXPECT_EQ(sum_of_taken(2, 100), 100);
}

}  // namespace sparsight::task_team_test
