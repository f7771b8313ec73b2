#include "tests/support/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "tests/support/paths.h"

extern char** environ;

namespace sparsight::testing {
namespace {

using Clock = std::chrono::steady_clock;

void make_pipe(int ends[2]) {
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe failed");
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> list;
  for (std::string& text : strings) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

// Appends the available output; false at the end of the stream.
bool drain(int fd, std::string& text) {
  char buffer[65536];
  const ssize_t n = read(fd, buffer, sizeof(buffer));
  if (n > 0) text.append(buffer, static_cast<size_t>(n));
  return n > 0 || (n < 0 && errno == EINTR);
}

}  // namespace

Program::Program(std::vector<std::string> arguments, ProgramOptions options, const std::string& program)
    : options_(std::move(options)) {
  signal(SIGPIPE, SIG_IGN);  // a program that does not read its stdin must not end the test
  const std::string path = program.empty() ? test::program_path() : program;
  arguments.insert(arguments.begin(), path);
  std::vector<std::string> environment;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    if (!options_.environment.count(text.substr(0, text.find('=')))) environment.push_back(text);
  }
  for (const auto& [name, value] : options_.environment) environment.push_back(name + "=" + value);
  const std::vector<char*> argv = pointers(arguments), envp = pointers(environment);

  int in[2], out[2], err[2];
  make_pipe(in), make_pipe(out), make_pipe(err);
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ == 0) {  // only async-signal-safe calls here
    setpgid(0, 0);
    if (!options_.folder.empty() && chdir(options_.folder.c_str()) != 0) _exit(126);
    dup2(in[0], 0), dup2(out[1], 1), dup2(err[1], 2);
    execve(path.c_str(), argv.data(), envp.data());
    _exit(127);
  }
  setpgid(pid_, pid_);  // in both, so that the group exists whichever comes first
  close(in[0]), close(out[1]), close(err[1]);
  in_ = in[1], out_ = out[0], err_ = err[0];
  collector_ = std::thread([this] { collect(); });
}

Program::~Program() {
  if (!collector_.joinable()) return;
  send(SIGKILL);
  collector_.join();
}

void Program::send(int signal) {
  if (pid_ > 0) kill(-pid_, signal);
}

ProgramResult Program::wait() {
  if (collector_.joinable()) collector_.join();
  return result_;
}

void Program::collect() {
  const auto deadline = Clock::now() + std::chrono::duration<double>(options_.timeout_seconds);
  size_t sent = 0;
  if (options_.input.empty()) close(in_), in_ = -1;
  while (out_ >= 0 || err_ >= 0) {
    pollfd fds[3] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}, {in_, POLLOUT, 0}};
    poll(fds, 3, 50);
    if (fds[0].revents && !drain(out_, result_.out)) close(out_), out_ = -1;
    if (fds[1].revents && !drain(err_, result_.err)) close(err_), err_ = -1;
    if (fds[2].revents) {
      const ssize_t n = write(in_, options_.input.data() + sent, std::min<size_t>(options_.input.size() - sent, 4096));
      if (n > 0) sent += static_cast<size_t>(n);
      if (n < 0 || sent == options_.input.size()) close(in_), in_ = -1;
    }
    if (!result_.timed_out && Clock::now() > deadline) {
      result_.timed_out = true;
      send(SIGKILL);
    }
  }
  if (in_ >= 0) close(in_), in_ = -1;
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  result_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

ProgramResult run_program(std::vector<std::string> arguments, ProgramOptions options) {
  return Program(std::move(arguments), std::move(options)).wait();
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "sparsight_test_XXXXXX").string();
  if (!mkdtemp(pattern.data())) throw std::runtime_error("cannot make a temporary folder");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& bytes) const {
  std::string target = path(name);
  std::filesystem::create_directories(std::filesystem::path(target).parent_path());
  std::ofstream file(target, std::ios::binary);
  if (!(file << bytes).flush()) throw std::runtime_error("cannot write " + target);
  return target;
}

}  // namespace sparsight::testing
