#include "bench/measure/own_process.h"

#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sparsight/core/error.h"
#include "sparsight/core/machine.h"

namespace sparsight::bench {
std::vector<double> values_in_own_process(size_t count, const std::function<std::vector<double>()>& measure) {
  int ends[2];
  if (pipe(ends) != 0) fail("cannot make a pipe");
  const pid_t parent = getpid(), child = fork();
  if (child < 0) fail("cannot start a process");
  const size_t bytes = count * sizeof(double);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);    // a benchmark that Ctrl-C or a kill ends leaves nothing running
    if (getppid() != parent) _exit(1);   // it has ended already
    mallopt(M_MMAP_THRESHOLD, 1 << 20);  // freed memory goes back to the system
    const std::vector<double> values = measure();
    const bool sent = values.size() == count && write(ends[1], values.data(), bytes) == static_cast<ssize_t>(bytes);
    _exit(sent ? 0 : 1);
  }
  close(ends[1]);
  std::vector<double> values(count);
  const bool got = read(ends[0], values.data(), bytes) == static_cast<ssize_t>(bytes);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!got || status != 0) fail("the process that measures memory has failed");
  return values;
}

double peak_growth(const std::function<void()>& work) {
  reset_peak_memory();
  const int64_t before = resident_memory_bytes();
  work();
  return static_cast<double>(peak_memory_bytes() - before);
}

}  // namespace sparsight::bench
