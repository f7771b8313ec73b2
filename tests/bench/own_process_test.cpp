// Measurements in a child process.
#include "bench/measure/own_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/errors.h"

namespace sparsight::own_process_test {

TEST(OwnProcess, ReturnsWhatTheChildMeasured) {
  EXPECT_EQ(bench::values_in_own_process(2,
                                         [] {
                                           return std::vector<double>{1.5, -2};
                                         }),
            (std::vector<double>{1.5, -2}));
  EXPECT_EQ(testing::error_text([] { bench::values_in_own_process(2, [] { return std::vector<double>{1}; }); }),
            "the process that measures memory has failed");
}

// Only the program gets the signal, as from `kill -INT`. Its child holds an end of the pipe for as long as it lives.
TEST(OwnProcess, TheChildEndsWithTheProgram) {
  for (const int by : {SIGINT, SIGKILL}) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t program = fork();
    if (program == 0) {
      close(ends[0]);
      signal(SIGINT, SIG_DFL);  // shells let what they start in the background ignore it
      bench::values_in_own_process(1, [&] {
        const bool told = write(ends[1], "x", 1) == 1;
        for (int waited = 0; told && waited < 60; ++waited) sleep(1);
        return std::vector<double>{1};
      });
      _exit(0);
    }
    close(ends[1]);
    char byte = 0;
    ASSERT_EQ(read(ends[0], &byte, 1), 1) << "the child measures now";
    kill(program, by);
    waitpid(program, nullptr, 0);
    alarm(20);  // the test program is ended if the pipe stays open
    EXPECT_EQ(read(ends[0], &byte, 1), 0);
    alarm(0);
    close(ends[0]);
  }
}

}  // namespace sparsight::own_process_test
