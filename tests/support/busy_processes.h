// Processes that compute and never wait, until this is destroyed.
#pragma once

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

namespace sparsight::testing {

class BusyProcesses {
 public:
  explicit BusyProcesses(int count) {
    for (int i = 0; i < count; ++i) {
      const pid_t child = fork();
      if (child == 0)
        for (volatile int64_t steps = 0;;) steps = steps + 1;
      if (child > 0) children_.push_back(child);
    }
    EXPECT_EQ(children_.size(), static_cast<size_t>(count)) << "the system allows no more processes";
  }
  ~BusyProcesses() {
    for (const pid_t child : children_) kill(child, SIGKILL);
    for (const pid_t child : children_) waitpid(child, nullptr, 0);
  }
  BusyProcesses(const BusyProcesses&) = delete;
  BusyProcesses& operator=(const BusyProcesses&) = delete;

 private:
  std::vector<pid_t> children_;
};

}  // namespace sparsight::testing
