#include "sparsight/jobs/slurm.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

#include "sparsight/core/error.h"
#include "sparsight/core/limits.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/jobs/plan.h"

namespace sparsight {
namespace {

constexpr const char* kMark = "# Written by sparsight: an array of jobs for sbatch.\n";

// `text` quoted as one word for the shell.
std::string shell_word(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

// A path in an #SBATCH line, where % starts a pattern and a backslash escapes the next character.
std::string sbatch_path(const std::string& path) {
  std::string word = "\"";
  for (const char c : path) {
    if (static_cast<unsigned char>(c) < ' ')
      fail_usage("the name of the folder ", printable(path),
                 " holds a line break or another control character, which no sbatch script can name; choose another");
    if (c == '"' || c == '\\') word += '\\';
    if (c == '%') word += '%';
    word += c;
  }
  return word;  // without the closing quote
}

std::string job_name(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return !std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.'; }, '-');
  return "sparsight-" + text;
}

// "0-3,7,9-26" of ascending numbers.
std::string ranges_text(const std::vector<int64_t>& numbers) {
  std::string text;
  for (size_t first = 0, last; first < numbers.size(); first = last + 1) {
    for (last = first; last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1;) ++last;
    text += cat(text.empty() ? "" : ",", numbers[first]);
    if (last > first) text += cat("-", numbers[last]);
  }
  return text;
}

// Twice the estimate plus ten minutes.
int64_t time_limit_minutes(double seconds) { return static_cast<int64_t>(std::ceil(2 * seconds / 60)) + 10; }

}  // namespace

SlurmArray slurm_array(const JobList& list, const JobStore& store, int64_t count) {
  SPARSIGHT_CHECK(count > 0);
  const int64_t jobs = std::ssize(list.settings);
  const std::vector<double> expected = expected_seconds(list, store);
  SlurmArray array;
  array.name = list.name;
  array.count = std::min(count, jobs);
  for (int64_t task = 0; task < array.count; ++task) {
    bool left = false;
    double seconds = 0;
    for (int64_t i = task; i < jobs; i += array.count)
      if (const auto at = static_cast<size_t>(i); !store.is_done(list.settings[at])) {
        left = true;
        if (!expected.empty()) seconds += expected[at];
      }
    if (left) array.tasks.push_back(task);
    if (left && !expected.empty()) array.seconds = std::max(array.seconds.value_or(0), seconds);
  }
  if (array.tasks.empty()) fail("all ", jobs, " jobs of ", list.name, " are done; there is nothing to submit");
  return array;
}

std::string slurm_script(const SlurmArray& array) {
  std::string script = "#!/bin/bash\n";
  script += kMark;
  script += cat("# Tasks that end early, by an error or at the time limit, continue when this is submitted again.\n",
                "#SBATCH --job-name=", job_name(array.name), "\n", "#SBATCH --array=", ranges_text(array.tasks), "\n",
                "#SBATCH --ntasks=1\n", "#SBATCH --cpus-per-task=", array.threads, "\n",
                "#SBATCH --output=", sbatch_path(array.log_folder), "/slurm-%A_%a.log\"\n",
                "#SBATCH --signal=B:TERM@60\n");  // a minute to write a checkpoint
  if (array.seconds)
    script += cat("#SBATCH --time=", time_limit_minutes(*array.seconds), "\n");  // minutes
  else
    script += "# The time of a task is unknown, so the partition's time limit applies. See --time of sbatch.\n";
  script += cat("cd ", shell_word(array.working_folder), " || exit 1\nexec");
  for (size_t i = 0; i < array.command.size(); ++i)
    script += cat(" ", i > 0 ? "\\\n  " : "", shell_word(array.command[i]));
  return script + cat("\"${SLURM_ARRAY_TASK_ID:?submit this with sbatch}/", array.count, "\"\n");
}

void write_slurm_script(const std::string& file, const SlurmArray& array) {
  const std::string script = slurm_script(array);
  if (std::error_code error; std::filesystem::exists(std::filesystem::symlink_status(file, error))) {
    if (!std::filesystem::is_regular_file(file, error) ||
        read_file(file, kMaxTextBytes).find(kMark) == std::string::npos)
      fail("the file ", file, " exists and is not a script that sparsight wrote; choose another name");
  }
  write_file_atomically(file, script);
}

}  // namespace sparsight
