#include "sparsight/io/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/log.h"
#include "sparsight/io/part_files.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

// env.json is the first file of a run, and says that Sparsight wrote it.
bool holds_a_run(const RunFolder& run) {
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(run.env(), error))) return false;
  const auto environment = try_parse_json_object(read_file(run.env(), kMaxJsonBytes));
  return environment && environment->contains("sparsight") && environment->contains("command");
}

// A run that ended before its first checkpoint and first logged step: nothing in it is worth keeping.
bool holds_nothing_trained(const RunFolder& run) {
  std::error_code error;
  const auto logged = fs::file_size(run.metrics(), error);
  return holds_a_run(run) && !run.has_checkpoint("last") && !run.has_checkpoint("best") && !run.is_done() &&
         (error || logged == 0);
}

// Whether the folder has no more in it than a process leaves that was killed before it began its run: env.json, the
// folder of the checkpoints and half-written files.
bool was_hardly_begun(const RunFolder& run) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run.path(), error)) {
    const std::string name = entry.path().filename().native();
    const bool checkpoints =
        name == "checkpoints" && fs::is_directory(entry.symlink_status(error)) && fs::is_empty(entry.path(), error);
    const bool begun = is_temporary_for("env.json", name) || is_temporary_for("config.toml", name) ||
                       is_temporary_for("superclasses.txt", name) || (name == "env.json" && holds_a_run(run));
    if (!checkpoints && !begun) return false;
  }
  if (error) fail_system("read the folder", run.path(), error.value());
  return true;
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) fail_system("remove", path.string(), error.value());
}

// Temporary files that a killed process left while it was writing `file`.
void remove_remains(const std::string& file) {
  std::error_code error;
  const fs::path path(file);
  for (const auto& entry : fs::directory_iterator(path.parent_path(), error))
    if (is_temporary_for(path.filename().string(), entry.path().filename().string())) remove_file(entry.path());
}

// The lock is released when the process ends, for whatever reason. File systems without locks are used without one.
std::shared_ptr<Descriptor> lock_folder(const std::string& path) {
  auto folder = std::make_shared<Descriptor>(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder->get() < 0) fail_system("open the folder", path, errno);
  if (flock(folder->get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    fail("another process is writing the run ", path, "; wait until it ends or choose another folder");
  return folder;
}

}  // namespace

RunFolder RunFolder::create(const std::string& path, IfExists if_exists) {
  RunFolder run(path);
  std::error_code error;
  const bool exists = fs::exists(fs::symlink_status(path, error));
  if (exists && !fs::is_directory(path, error)) fail("the run folder ", path, " is a file; choose another name");
  const bool fresh = !exists || was_hardly_begun(run);
  if (if_exists == IfExists::kResume && (fresh || !fs::exists(run.config())))
    fail("cannot resume: ", path, " holds no run; start one without --resume");
  const bool reused = if_exists == IfExists::kRefuse && !fresh && holds_nothing_trained(run);
  if (reused) if_exists = IfExists::kOverwrite;
  const bool foreign = !fresh && !fs::exists(run.config(), error) && !holds_a_run(run);
  if (if_exists == IfExists::kRefuse && !fresh && !foreign)
    fail("the run folder ", path,
         " exists already; go on with --resume, replace it with --overwrite or choose another");
  if (foreign || (if_exists == IfExists::kOverwrite && !fresh && !holds_a_run(run)))
    fail("the folder ", path, " holds files that do not belong to a run; choose another folder");
  create_folder(path);
  run.lock_ = lock_folder(path);
  const std::string checkpoints = path + "/checkpoints";
  if (fs::is_symlink(fs::symlink_status(checkpoints, error)) && if_exists == IfExists::kOverwrite)
    fail(checkpoints, " is a link, and what it leads to is not deleted; remove the link or choose another folder");
  const std::vector<std::string> files = run.files();
  if (reused) log_info("the run in ", path, " ended before its first step was saved; starting anew in its folder");
  if (if_exists == IfExists::kOverwrite)
    for (const std::string& file : files) remove_file(file);
  create_folder(checkpoints);
  for (const std::string& file : files) remove_remains(file);
  return run;
}

RunFolder RunFolder::open(const std::string& path) {
  RunFolder run(path);
  if (!fs::exists(run.config()))
    fail(path, " is not a run folder: it has no config.toml; name the folder that train wrote");
  return run;
}

std::string RunFolder::checkpoint(const std::string& name) const { return index_or_file(checkpoint_file(name)); }

// env.json last: until it is gone, the folder counts as a run.
std::vector<std::string> RunFolder::files() const {
  std::vector<std::string> all{done(), report(), confused(), metrics(), extensions()};
  for (const char* const name : {"last", "best"}) {
    const std::string file = checkpoint_file(name);
    all.insert(all.end(), {file, part_index(file)});
    for (const std::string& part : find_parts(file)) all.push_back(part);
  }
  all.insert(all.end(), {superclasses(), config(), env()});
  return all;
}

bool RunFolder::has_checkpoint(const std::string& name) const { return fs::exists(checkpoint(name)); }
bool RunFolder::is_done() const { return fs::exists(done()); }
void RunFolder::mark_done() const { write_file_atomically(done(), ""); }
void RunFolder::clear_done() const { remove_file(done()); }

}  // namespace sparsight
