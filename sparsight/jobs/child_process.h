// A child process whose output is read while it runs.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "sparsight/io/atomic_file.h"

namespace sparsight {

class ChildProcess {
 public:
  // Starts `command` (a path or a name on the PATH, then its arguments), with empty stdin and in a process group of its
  // own, so that Ctrl-C reaches it only through send(). Raises Error if it cannot be started.
  explicit ChildProcess(const std::vector<std::string>& command);
  ~ChildProcess();  // kills it if it is still running
  ChildProcess(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  void send(int signal);

  // The complete lines that it wrote to stdout and stderr since the last call.
  std::vector<std::string> new_lines();
  // Its status as waitpid() returns it; nothing while it runs. What it wrote before can still be read.
  std::optional<int> status();
  int wait();

 private:
  pid_t pid_ = -1;
  std::optional<Descriptor> output_;
  std::string rest_;  // of a line that has not ended
  std::optional<int> status_;
};

// "ended with exit code 1", "was ended by signal 9 (Killed)"
std::string status_text(int status);

}  // namespace sparsight
