// The warning about other processes, from made-up times.
#include <gtest/gtest.h>

#include <sstream>

#include "bench/measure/interference.h"

namespace sparsight::interference_test {
namespace {

using bench::CpuTimes;

constexpr int64_t kSecond = 1'000'000'000;

// Before: anything. After: 10 seconds of 2 cores (2000 ticks), in which we ran on both for 8.
struct Measured {
  CpuTimes before{.stolen = 70, .busy = 5000, .total = 90000, .own = 300, .running = kSecond, .delayed = kSecond};
  CpuTimes after{.stolen = 70, .busy = 6600, .total = 92000, .own = 1900, .running = 17 * kSecond, .delayed = kSecond};
  std::string warning() const { return bench::interference_warning(before, after); }
};

}  // namespace

TEST(Interference, QuietMachine) {
  Measured quiet;
  EXPECT_EQ(quiet.warning(), "");
  quiet.after.stolen += 20;             // 1 % of 2000 ticks
  quiet.after.busy += 100;              // 5 %
  quiet.after.delayed += kSecond / 10;  // 0.6 % of 16.1 s
  EXPECT_EQ(quiet.warning(), "");
}

TEST(Interference, StolenTime) {
  Measured stolen;
  stolen.after.stolen += 60;
  EXPECT_EQ(stolen.warning(),
            "warning: other processes ran during the measurement: our threads waited for a core 0 % of their time, "
            "others used 0 % of the cores' time, and the host took 3 %");
}

TEST(Interference, WaitingForACore) {
  Measured waiting;
  waiting.after.delayed += 4 * kSecond;  // of 16 + 4 s
  EXPECT_NE(waiting.warning().find("waited for a core 20 % of their time"), std::string::npos) << waiting.warning();
}

TEST(Interference, OtherProcesses) {
  Measured others;
  others.after.busy += 400;  // of 2000 ticks
  EXPECT_NE(others.warning().find("others used 20 % of the cores' time"), std::string::npos) << others.warning();
}

TEST(Interference, NothingCountedIsNoWarning) { EXPECT_EQ(bench::interference_warning({}, {}), ""); }

// user 100 + nice 20 + system 30 + irq 5 + softirq 6 = 161 busy; + idle 800 + iowait 9 + steal 40 = 1010.
TEST(Interference, ReadsTheFirstLineOfStat) {
  std::istringstream stat("cpu  100 20 30 800 9 5 6 40 3 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n");
  CpuTimes times;
  ASSERT_TRUE(bench::read_machine_times(stat, times));
  EXPECT_EQ(times.busy, 161);
  EXPECT_EQ(times.total, 1010);
  EXPECT_EQ(times.stolen, 40);
  std::istringstream other("intr 1 2 3 4 5 6 7 8 9");
  EXPECT_FALSE(bench::read_machine_times(other, times));
}

TEST(Interference, CountsThisProcess) {
  const CpuTimes now = bench::cpu_times_now();
  EXPECT_GT(now.total, 0);
  EXPECT_GT(now.running, 0);
}

}  // namespace sparsight::interference_test
