// While other programs occupy the cores, waiting threads of predict must sleep, whatever the verb and without any
// environment variable. A spinning thread never gives up its core, a sleeping one does so for every wait.
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <sched.h>
#include <sys/resource.h>

#include <optional>
#include <vector>

#include "sparsight/data/readers/png_write.h"
#include "tests/e2e/train_fixture.h"
#include "tests/support/busy_processes.h"

namespace sparsight::testing::busy_machine_test {
namespace {

// Two processes that never wait, and only two cores for them and for what the test starts.
class BusyCores {
 public:
  BusyCores() {
    sched_getaffinity(0, sizeof(before_), &before_);
    cpu_set_t two;
    CPU_ZERO(&two);
    for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&two) < 2; ++core)
      if (CPU_ISSET(core, &before_)) CPU_SET(core, &two);
    cores = CPU_COUNT(&two);
    sched_setaffinity(0, sizeof(two), &two);
    processes_.emplace(cores);
  }
  ~BusyCores() { sched_setaffinity(0, sizeof(before_), &before_); }
  int cores = 0;

 private:
  cpu_set_t before_;
  std::optional<BusyProcesses> processes_;
};

// How often the program's threads went to sleep while it classified `images` images one by one.
int64_t sleeps(const std::string& run, const std::string& image, int images,
               const std::map<std::string, std::string>& environment) {
  std::vector<std::string> arguments{"predict", run, "--set", "run.threads=0"};
  arguments.insert(arguments.end(), static_cast<size_t>(images), image);
  rusage before, after;
  getrusage(RUSAGE_CHILDREN, &before);
  const ProgramResult result =
      run_program(arguments, {.input = "", .environment = environment, .timeout_seconds = 300});
  getrusage(RUSAGE_CHILDREN, &after);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return after.ru_nvcsw - before.ru_nvcsw;
}

}  // namespace

TEST(BusyMachine, WaitingThreadsSleep) {
  const TemporaryFolder folder;
  const ProgramResult trained =
      run_program({"train", tiny_config(folder), "--set", "train.max_steps=1", "--out", folder.path("run")});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const std::string image = folder.write("a.png", encode_png(at::full({1, 16, 16}, 200, at::kByte)));
  const BusyCores busy;
  if (busy.cores < 2) GTEST_SKIP() << "needs two cores";
  constexpr int kImages = 4096;
  // A user's own setting is respected: threads that spin sleep a few times while the program starts.
  const int64_t spinning = sleeps(folder.path("run"), image, kImages / 32, {{"GOMP_SPINCOUNT", "1000000"}});
  const int64_t asleep = sleeps(folder.path("run"), image, kImages, {});
  EXPECT_GT(asleep, 100 + spinning);
  EXPECT_LT(spinning, 50);
}

}  // namespace sparsight::testing::busy_machine_test
