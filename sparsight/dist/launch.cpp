#include "sparsight/dist/launch.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <thread>

#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/log.h"
#include "sparsight/core/private_folder.h"

extern char** environ;

namespace sparsight::dist {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kTimeToEnd{20};  // of a process that was told to
constexpr std::chrono::milliseconds kPoll{20};

struct End {
  int64_t rank;
  int status;  // of waitpid
};

class Processes {
 public:
  Processes(const Launch& launch, const std::string& store, const std::string& token, int64_t restarts) {
    for (int64_t rank = 0; rank < launch.processes; ++rank) start(launch, store, token, restarts, rank);
  }

  // What went wrong, or nothing when all have succeeded: the first that was killed or, if none was, the first that
  // failed. (When one is killed the others fail soon, and may be seen first.)
  std::optional<End> wait() {
    bool passed_on = false, asked = false, forced = false;
    std::optional<End> killed, failed;
    Clock::time_point deadline;
    while (running_ > 0) {
      if (interrupted() && !passed_on) signal_all(SIGINT), passed_on = true;
      if (asked && !forced && Clock::now() > deadline) signal_all(SIGKILL), forced = true;
      const std::optional<End> end = collect();
      if (!end) {
        std::this_thread::sleep_for(kPoll);
        continue;
      }
      if (end->status == 0) continue;
      const int number = WIFSIGNALED(end->status) ? WTERMSIG(end->status) : 0;
      const bool by_us = (asked && number == SIGTERM) || (forced && number == SIGKILL);
      if (!failed) failed = end;
      if (number != 0 && !by_us && !killed) killed = end;
      if (asked) continue;
      if (!passed_on) signal_all(SIGTERM);
      asked = true, deadline = Clock::now() + kTimeToEnd;
    }
    return killed ? killed : failed;
  }

 private:
  void start(const Launch& launch, const std::string& store, const std::string& token, int64_t restarts, int64_t rank) {
    std::vector<std::string> variables;
    const auto set = [&](const std::string& name, const std::string& value) {
      variables.push_back(name + "=" + value);
    };
    set("RANK", std::to_string(rank));
    set("WORLD_SIZE", std::to_string(launch.processes));
    set("TORCHELASTIC_RESTART_COUNT", std::to_string(restarts));
    set("SPARSIGHT_STORE", store);
    set("SPARSIGHT_RUN_TOKEN", token);
    set("TMPDIR",
        std::filesystem::path(store).parent_path().string());  // what a killed rank leaves behind goes with it
    if (!std::getenv("OMP_NUM_THREADS"))                       // else each rank would take all cores
      set("OMP_NUM_THREADS",
          std::to_string(std::max<int64_t>(1, std::thread::hardware_concurrency() / launch.processes)));
    std::vector<char*> environment, arguments;
    for (std::string& variable : variables) environment.push_back(variable.data());
    for (char** inherited = environ; *inherited; ++inherited) {
      const bool replaced = std::ranges::any_of(variables, [&](const std::string& variable) {
        return std::strncmp(*inherited, variable.c_str(), variable.find('=') + 1) == 0;
      });
      if (!replaced) environment.push_back(*inherited);
    }
    environment.push_back(nullptr);
    std::vector<std::string> command = launch.command;
    for (std::string& argument : command) arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    const pid_t parent = getpid(), child = fork();
    if (child < 0) fail("cannot start rank ", rank, ": ", std::strerror(errno));
    if (child == 0) {
      setpgid(0, 0);                     // Ctrl-C in the terminal reaches the launcher alone, which passes it on
      prctl(PR_SET_PDEATHSIG, SIGTERM);  // no rank outlives it
      if (getppid() != parent) _exit(1);
      execve(arguments.front(), arguments.data(), environment.data());
      _exit(127);
    }
    children_.push_back(child), ++running_;
  }

  std::optional<End> collect() {
    for (size_t rank = 0; rank < children_.size(); ++rank) {
      int status = 0;
      if (children_[rank] == 0 || waitpid(children_[rank], &status, WNOHANG) != children_[rank]) continue;
      children_[rank] = 0, --running_;
      return End{static_cast<int64_t>(rank), status};
    }
    return std::nullopt;
  }

  void signal_all(int number) {
    for (const pid_t child : children_)
      if (child != 0) kill(child, number);
  }

  std::vector<pid_t> children_;  // 0: has ended
  int64_t running_ = 0;
};

// 128 bits that other runs do not have.
std::string random_token() {
  std::random_device random;
  char text[40];
  std::snprintf(text, sizeof text, "%08x%08x%08x%08x", random(), random(), random(), random());
  return text;
}

}  // namespace

int launch(const Launch& launch) {
  const PrivateFolder folder("sparsight-ranks");  // where the processes find each other
  const std::string token = random_token();
  for (int64_t restarts = 0;; ++restarts) {
    Processes processes(launch, folder.path() + "/store" + std::to_string(restarts), token, restarts);
    const std::optional<End> failed = processes.wait();
    if (!failed) return 0;
    if (!WIFSIGNALED(failed->status)) return WEXITSTATUS(failed->status);
    const int number = WTERMSIG(failed->status);
    if (interrupted() || restarts == launch.max_restarts) {
      log_warning("rank ", failed->rank, " was killed by signal ", number);
      return 128 + number;
    }
    log_warning("rank ", failed->rank, " was killed by signal ", number, "; all ranks start again from the last ",
                "checkpoint (restart ", restarts + 1, " of ", launch.max_restarts, ")");
  }
}

}  // namespace sparsight::dist
