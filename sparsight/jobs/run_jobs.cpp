#include "sparsight/jobs/run_jobs.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <regex>
#include <thread>

#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/core/progress.h"
#include "sparsight/jobs/child_process.h"

namespace sparsight {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLook = std::chrono::milliseconds(200);
constexpr int kMaxIdleWorkers = 3;

bool is_over(const JobStore& store, const Json& job) { return store.is_done(job) || store.has_failed(job); }

void do_job(const JobList& list, const JobStore& store, const Json& job) {
  if (list.describe) log_info(list.name, ": ", list.describe(job));
  const auto begin = Clock::now();
  Json result;
  try {
    result = list.run(job, store.job_folder(job));
  } catch (const std::exception& error) {  // torch's errors continue with a stack trace
    const std::string text = error.what();
    if (!interrupted()) store.record_failure(job, text.substr(0, text.find('\n')));
    return;
  }
  store.finish(job, {result, std::chrono::duration<double>(Clock::now() - begin).count()});
}

// The jobs that were neither done nor failed at the last check.
class JobsLeft {
 public:
  JobsLeft(const JobList& list, const JobStore& store) : list_(list), store_(store), left_(list.settings.size()) {
    std::iota(left_.begin(), left_.end(), size_t{0});
    look();
  }
  void look() {
    std::erase_if(left_, [this](size_t index) {
      const Json job = list_.settings[index];
      const bool done = store_.is_done(job), failed = !done && store_.has_failed(job);
      failed_ += failed;
      return done || failed;
    });
  }
  void show(Progress& progress) const { progress.update(over(), failed_ > 0 ? cat(failed_, " failed") : ""); }
  bool none() const { return left_.empty(); }
  int64_t count() const { return std::ssize(left_); }
  int64_t over() const { return std::ssize(list_.settings) - count(); }
  // Those that no process is running.
  int64_t free() const {
    return std::ranges::count_if(left_, [this](size_t index) { return !store_.is_claimed(list_.settings[index]); });
  }
  // The jobs that the process `pid`, which has ended, was running.
  std::vector<Json> claimed_by(int pid) const {
    std::vector<Json> jobs;
    for (const size_t index : left_)
      if (const Json job = list_.settings[index]; store_.was_claimed_by(job, pid)) jobs.push_back(job);
    return jobs;
  }

 private:
  const JobList& list_;
  const JobStore& store_;
  std::vector<size_t> left_;  // indices
  int64_t failed_ = 0;
};

[[noreturn]] void fail_interrupted(const JobsLeft& left) {
  fail("interrupted after ", left.over(), " of ", left.over() + left.count(),
       " jobs; run the same command again to continue");
}

// Worker processes and their output.
class Workers {
 public:
  Workers(const JobStore& store, const std::vector<std::string>& command, JobsLeft& left)
      : store_(store), command_(command), left_(left) {}

  void start() { running_.push_back({std::make_unique<ChildProcess>(command_), left_.over()}); }
  int64_t running() const { return std::ssize(running_); }
  void send(int signal) {
    for (Worker& worker : running_) worker.process->send(signal);
  }
  const std::string& error() const { return error_; }  // why a worker gave up, "" if none did

  // Passes on the output of workers, and removes those that have ended.
  void look() {
    for (Worker& worker : running_) {
      const auto status = worker.process->status();
      for (const std::string& line : worker.process->new_lines()) pass_on(line);
      if (status) note_end(worker, *status);
    }
    std::erase_if(running_, [](const Worker& worker) { return worker.process->status().has_value(); });
  }

 private:
  struct Worker {
    std::unique_ptr<ChildProcess> process;
    int64_t over_at_start;
  };

  // Workers write JSON lines; anything else comes from a library, or from a crash.
  void pass_on(const std::string& line) {
    const Json json = try_parse_json_object(line).value_or(Json());
    const std::string level = text(json, "level"), message = text(json, "message");
    if (level.find("error") != std::string::npos) {
      error_ = message;
    } else if (!message.empty()) {
      log_line(level, message);
    } else if (!line.empty()) {
      log_warning(printable(line));
    }
  }

  void note_end(const Worker& worker, int status) {
    if (interrupted()) return;
    left_.look();
    if (WIFSIGNALED(status))
      for (const Json& job : left_.claimed_by(worker.process->pid()))
        store_.record_failure(job, cat("its process ", status_text(status)));
    left_.look();
    if (!error_.empty()) return;
    idle_ = left_.over() > worker.over_at_start ? 0 : idle_ + 1;
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0) error_ = cat("a worker process ", status_text(status));
    if (idle_ >= kMaxIdleWorkers)
      error_ = cat("worker processes end without finishing a job; the last one ", status_text(status));
  }

  const JobStore& store_;
  const std::vector<std::string>& command_;
  JobsLeft& left_;
  std::vector<Worker> running_;
  std::string error_;
  int idle_ = 0;  // workers in succession during which no job was finished
};

// Before jobs are run: those with damaged results will run again, and done ones lose what a process left that was
// killed right after.
void look_through(const JobList& list, const JobStore& store) {
  for (const Json& job : list.settings) {
    forget_if_damaged(store, job, list.damage);
    if (store.is_done(job)) store.tidy(job);
  }
}

}  // namespace

void forget_if_damaged(const JobStore& store, const Json& settings, const JobDamage& damage) {
  const std::string found = store.read(settings) && damage ? damage(store.job_folder(settings)) : "";
  if (found.empty()) return;
  log_warning(found, ": the job will run again");
  store.forget_result(settings);
}

void check_can_run(const JobList& list) {
  if (list.settings.size() > kMaxJobs)
    fail_usage(list.name, " has ", list.settings.size(), " jobs, and at most ", kMaxJobs,
               " can be run in one folder; choose fewer, such as fewer trials");
}

void work_once(const JobList& list, const JobStore& store, const std::function<void()>& after_each) {
  for (const Json& job : list.settings) {
    if (interrupted()) return;
    if (is_over(store, job)) continue;
    if (const auto lock = store.claim(job)) do_job(list, store, job);
    if (after_each) after_each();
  }
}

void work_here(const JobList& list, const JobStore& store) {
  look_through(list, store);
  work_along(list, store);
}

void work_along(const JobList& list, const JobStore& store) {
  const OnceEachWarning once;  // the jobs of a list read the same data
  JobsLeft left(list, store);
  Progress progress(list.name, std::ssize(list.settings), "jobs", left.over());
  const auto look = [&] {
    left.look();
    left.show(progress);
  };
  while (!left.none()) {
    work_once(list, store, look);
    look();
    if (left.none()) break;
    if (interrupted()) fail_interrupted(left);
    std::this_thread::sleep_for(kLook);  // other processes are running the rest, or may give it up
  }
  progress.finish();
}

void work_in_processes(const JobList& list, const JobStore& store, const std::vector<std::string>& command,
                       int64_t processes) {
  look_through(list, store);
  JobsLeft left(list, store);
  Progress progress(list.name, std::ssize(list.settings), "jobs", left.over());
  Workers workers(store, command, left);
  bool stopping = false;
  while (true) {
    left.look();
    workers.look();
    left.show(progress);
    const bool stop = interrupted() || !workers.error().empty();
    if (stop && !stopping) workers.send(SIGTERM);
    stopping = stopping || stop;
    if (workers.running() == 0 && (left.none() || stopping)) break;
    if (!stopping && workers.running() < processes)
      for (int64_t wanted = std::min(processes - workers.running(), left.free()); wanted > 0; --wanted) workers.start();
    std::this_thread::sleep_for(kLook);
  }
  left.look();
  if (interrupted() && !left.none()) fail_interrupted(left);
  if (!workers.error().empty()) fail(workers.error());
  progress.finish();
}

ArrayTask parse_array_task(const std::string& text) {
  static const std::regex form("([0-9]{1,9})/([0-9]{1,9})");
  std::smatch parts;
  ArrayTask task;
  if (std::regex_match(text, parts, form)) task = {std::stoll(parts[1]), std::stoll(parts[2])};
  if (parts.empty() || task.index >= task.count)
    fail_usage("a task must be INDEX/COUNT with 0 <= INDEX < COUNT, such as 3/27; got \"", printable(text), "\"");
  return task;
}

TaskResult work_on_task(const JobList& list, const JobStore& store, const ArrayTask& task) {
  const OnceEachWarning once;
  TaskResult result;
  for (int64_t i = task.index; i < std::ssize(list.settings); i += task.count) {
    const Json job = list.settings[static_cast<size_t>(i)];
    forget_if_damaged(store, job, list.damage);
    if (const auto lock = interrupted() ? std::nullopt : store.claim(job)) {
      store.forget_failure(job);
      do_job(list, store, job);
    }
    if (interrupted() && !store.is_done(job))
      fail("interrupted after ", result.done, " jobs of task ", task.index, " of ", task.count,
           "; run the same command again to continue");
    ++(store.is_done(job) ? result.done : store.has_failed(job) ? result.failed : result.elsewhere);
  }
  return result;
}

}  // namespace sparsight
