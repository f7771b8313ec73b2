#include "sparsight/jobs/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "sparsight/core/error.h"

extern char** environ;

namespace sparsight {

ChildProcess::ChildProcess(const std::vector<std::string>& command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("cannot start ", command.at(0), ": ", std::strerror(errno));
  output_.emplace(ends[0]);
  const Descriptor input(ends[1]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);

  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const int error = posix_spawnp(&pid_, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) fail("cannot start ", command[0], ": ", std::strerror(error));
}

ChildProcess::~ChildProcess() {
  if (status()) return;
  send(SIGKILL);
  wait();
}

void ChildProcess::send(int signal) {
  if (!status()) kill(pid_, signal);
}

std::vector<std::string> ChildProcess::new_lines() {
  char chunk[1 << 12];
  ssize_t got;
  while ((got = read(output_->get(), chunk, sizeof chunk)) > 0) rest_.append(chunk, static_cast<size_t>(got));
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.push_back(rest_.substr(begin, end - begin));
  rest_.erase(0, begin);
  if (got == 0 && !rest_.empty()) lines.push_back(std::exchange(rest_, ""));  // the last line, without newline
  return lines;
}

std::optional<int> ChildProcess::status() {
  int status = 0;
  if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  return status_;
}

int ChildProcess::wait() {
  int status = 0;
  while (!status_)
    if (waitpid(pid_, &status, 0) == pid_) {
      status_ = status;
    } else if (errno != EINTR) {
      fail("cannot wait for the process ", pid_, ": ", std::strerror(errno));
    }
  return *status_;
}

std::string status_text(int status) {
  if (WIFSIGNALED(status)) return cat("was ended by signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
  return cat("ended with exit code ", WEXITSTATUS(status));
}

}  // namespace sparsight
