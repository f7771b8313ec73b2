#include "sparsight/kernels/threads/task_team.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <semaphore>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "sparsight/kernels/threads/own_threads.h"
#include "sparsight/kernels/threads/tasks.h"
#include "tests/support/platform.h"

namespace sparsight::task_team_test {
namespace {

using namespace std::chrono_literals;

// Two or more threads of one team, which the tests share.
void run_on_team(int64_t threads, FunctionRef<void()> work) {
  static cpu::TaskTeam team;
  team.run(threads, work, false);
}

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
  SKIP_WITHOUT_THREADS();
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
  SKIP_WITHOUT_THREADS();
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
  SKIP_WITHOUT_THREADS();
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
  SKIP_WITHOUT_THREADS();
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

TEST(TaskTeam, TellsWhatRunsInside) {
  EXPECT_FALSE(cpu::TaskTeam::inside());
  std::atomic<int> calls{0}, inside{0};
  run_on_team(3, [&] { ++calls, inside += cpu::TaskTeam::inside(); });
  EXPECT_GE(calls, 1);
  EXPECT_EQ(inside, calls);
  EXPECT_FALSE(cpu::TaskTeam::inside());
}

// Teams of threads that have worked, and of threads that never began.
TEST(TaskTeam, EndsItsThreads) {
  const auto threads = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}); };
  const auto before = threads();
  for (int round = 0; round < 50; ++round) {
    cpu::TaskTeam team;
    std::atomic<int64_t> next{0};
    team.run(
        4,
        [&] {
          while (next++ < 5) {
          }
        },
        round % 2 == 1);
  }
  // Joined threads may be listed a moment longer, under an emulator in both counts.
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (threads() > before && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
  EXPECT_LE(threads(), before);
}

TEST(OwnThreads, RunEachTaskOnceWithAsManyThreadsAsTheyCount) {
  for (const int64_t count : {0, 1, 3}) {
    cpu::OwnThreads threads(count);
    EXPECT_EQ(threads.count(), std::max<int64_t>(1, count));
    std::vector<std::atomic<int>> taken(100);
    cpu::run_tasks(threads, 100, [&](int64_t task, const auto&) { ++taken[static_cast<size_t>(task)]; });
    for (const auto& times : taken) EXPECT_EQ(times, 1);
    std::atomic<int64_t> covered{0};
    cpu::run_ranges(threads, 1000, 10, [&](int64_t begin, int64_t end) { covered += end - begin; });
    EXPECT_EQ(covered, 1000);
  }
}

}  // namespace sparsight::task_team_test
