#include "sparsight/core/interrupt.h"
#include "tests/support/platform.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace sparsight::interrupt_test {
namespace {

// Runs `body` in a child process and returns its exit code.
template <class Body>
int child_exit_code(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    close(STDERR_FILENO);
    install_interrupt_handler();
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TEST(Interrupt, FirstSignalOnlySetsTheFlag) {
  if (test::kIsWasm) GTEST_SKIP() << "WebAssembly has no processes or signals";
  EXPECT_EQ(child_exit_code([] {
              if (interrupted()) return 1;
              raise(SIGINT);
              return interrupted() ? 42 : 2;
            }),
            42);
}

TEST(Interrupt, TerminateIsLikeInterrupt) {
  if (test::kIsWasm) GTEST_SKIP() << "WebAssembly has no processes or signals";
  EXPECT_EQ(child_exit_code([] {
              raise(SIGTERM);
              return interrupted() ? 42 : 2;
            }),
            42);
}

TEST(Interrupt, SecondSignalEndsAtOnce) {
  if (test::kIsWasm) GTEST_SKIP() << "WebAssembly has no processes or signals";
  EXPECT_EQ(child_exit_code([] {
              raise(SIGINT);
              raise(SIGINT);
              return 42;
            }),
            130);
}

}  // namespace sparsight::interrupt_test
