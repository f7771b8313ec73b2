// When the machine counts as busy or crowded, from made-up times and numbers of threads.
#include <gtest/gtest.h>

#include "sparsight/kernels/threads/contention.h"
#include "tests/support/busy_processes.h"

namespace sparsight::contention_test {
namespace {

using cpu::AllThreadTimes;
using cpu::ContentionJudge;

constexpr int64_t kMs = 1'000'000;

// A process of two threads that goes on for 50 ms at a time.
struct Process {
  ContentionJudge judge;
  AllThreadTimes times{{1, {}}, {2, {}}};
  bool go_on(int64_t delayed_of_50) {
    times[2].running += (50 - delayed_of_50) * kMs;
    times[2].delayed += delayed_of_50 * kMs;
    return judge.update(times);
  }
};

}  // namespace

TEST(Contention, OneDelayedThreadIsEnough) {
  Process process;
  EXPECT_FALSE(process.go_on(0));
  EXPECT_TRUE(process.go_on(20));  // 40 %
}

TEST(Contention, OnePreemptionIsNot) {
  Process process;
  EXPECT_FALSE(process.go_on(4));  // 8 %
  EXPECT_FALSE(process.go_on(0));
}

TEST(Contention, EndsAfterFiveJudgementsWithoutDelay) {
  Process process;
  ASSERT_TRUE(process.go_on(25));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(process.go_on(0));
  EXPECT_TRUE(process.go_on(5));  // 10 %: the count begins again
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(process.go_on(1));
  EXPECT_FALSE(process.go_on(1));
}

// Requests of 1 ms each, far apart: judged once they come to 30 ms.
TEST(Contention, ShortWorkIsJudgedTogether) {
  ContentionJudge judge;
  AllThreadTimes times{{1, {}}};
  for (int i = 0; i < 15; ++i) {
    EXPECT_FALSE(judge.update(times)) << i;
    times[1].running += kMs;
    times[1].delayed += kMs;
  }
  EXPECT_TRUE(judge.update(times));
}

TEST(Contention, WithoutTimesNothingChanges) {
  Process process;
  ASSERT_TRUE(process.go_on(25));
  EXPECT_TRUE(process.judge.update({}));
  EXPECT_FALSE(ContentionJudge().update({}));
}

// Two programs that want both processors: 2 (1 - 0.75^n) >= 1.5 from the fifth call on.
TEST(Contention, CrowdedOnceOthersWantThreeQuartersOfTheProcessors) {
  cpu::CrowdJudge judge;
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(judge.update(2, 2)) << i;
  EXPECT_TRUE(judge.update(2, 2));
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(judge.update(1, 2)) << i;  // half of them: as before
  cpu::CrowdJudge other;
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(other.update(1, 2)) << i;
}

// One other program: 1 - 0.75^2 = 0.44 at the second call; 0.33, 0.25 and 0.18 once it is gone.
TEST(Contention, OneOtherProgramIsPresent) {
  cpu::CrowdJudge judge;
  judge.update(0, 16);
  EXPECT_FALSE(judge.has_others());
  judge.update(1, 16);
  EXPECT_FALSE(judge.has_others());  // 0.25: perhaps by chance
  judge.update(1, 16);
  EXPECT_TRUE(judge.has_others());
  judge.update(0, 16);
  EXPECT_TRUE(judge.has_others());  // 0.33
  for (int i = 0; i < 2; ++i) judge.update(0, 16);
  EXPECT_FALSE(judge.has_others());  // 0.18
}

TEST(Contention, NotCrowdedOnceOthersAreGone) {
  cpu::CrowdJudge judge;
  for (int i = 0; i < 50; ++i) judge.update(16, 16);
  EXPECT_TRUE(judge.update(16, 16));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(judge.update(0, 16)) << i;  // 16 * 0.75^2 = 9
  EXPECT_FALSE(judge.update(0, 16));                                  // 6.75
}

#if defined(__linux__)
// Another process is counted, for as long as it runs.
TEST(Contention, OtherReadyThreadsAreCounted) {
  constexpr int kOthers = 40;
  {
    const testing::BusyProcesses others(kOthers);
    const int64_t counted = cpu::other_ready_threads();
    if (counted == 0) GTEST_SKIP() << "this system does not count threads that are ready to run";
    EXPECT_GE(counted, kOthers);
  }
  EXPECT_LT(cpu::other_ready_threads(), kOthers);
}
#endif

}  // namespace sparsight::contention_test
