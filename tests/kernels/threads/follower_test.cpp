#include "sparsight/kernels/threads/follower.h"

#include <semaphore>
#include <thread>

#include <gtest/gtest.h>

#if defined(__linux__)

namespace sparsight::follower_test {
namespace {

cpu_set_t thread_cores(pthread_t thread) {
  cpu_set_t cores;
  EXPECT_EQ(pthread_getaffinity_np(thread, sizeof cores, &cores), 0);
  return cores;
}

bool same(const cpu_set_t& a, const cpu_set_t& b) { return CPU_EQUAL(&a, &b); }

}  // namespace

TEST(Follower, SharesTheCoreOfItsLeaderAndIsFreedAgain) {
  cpu::Follower follower;
  std::binary_semaphore begun{0}, end{0};
  std::thread thread([&] {
    follower.begin();
    begun.release();
    end.acquire();
  });
  begun.acquire();
  const cpu_set_t before = thread_cores(thread.native_handle());

  std::thread([&] {  // a leader that stays where it is
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
    ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof one, &one), 0);
    follower.lead(true);
    EXPECT_TRUE(same(thread_cores(thread.native_handle()), one));
    follower.lead(false);
    EXPECT_TRUE(same(thread_cores(thread.native_handle()), before));
  })
      .join();
  end.release();
  thread.join();
}

TEST(Follower, IsLeftAloneUntilItHasBegun) {
  cpu::Follower follower;
  const cpu_set_t before = thread_cores(pthread_self());
  follower.lead(true);
  EXPECT_TRUE(same(thread_cores(pthread_self()), before));
}

}  // namespace sparsight::follower_test

#endif
