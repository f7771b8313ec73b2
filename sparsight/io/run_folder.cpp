#include "sparsight/io/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/json_text.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

bool is_empty_folder(const std::string& path) {
  std::error_code error;
  const bool empty = fs::is_directory(path, error) && fs::is_empty(path, error);
  if (error) fail_system("read the folder", path, error.value());
  return empty;
}

// env.json is the first file of a run, and says that Sparsight wrote it.
bool holds_a_run(const RunFolder& run) {
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(run.env(), error))) return false;
  const auto environment = try_parse_json_object(read_file(run.env(), kMaxJsonBytes));
  return environment && environment->contains("sparsight") && environment->contains("command");
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) fail_system("remove", path.string(), error.value());
}

// The files that a killed process was writing in the place of `file`.
void remove_remains(const std::string& file) {
  std::error_code error;
  const fs::path path(file);
  for (const auto& entry : fs::directory_iterator(path.parent_path(), error))
    if (is_temporary_of(path.filename().string(), entry.path().filename().string())) remove_file(entry.path());
}

// The lock goes with the process, however it ends. Disks without locks are used without.
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
  const bool fresh = !exists || is_empty_folder(path);
  if (if_exists == IfExists::kResume && (fresh || !fs::exists(run.config())))
    fail("cannot resume: ", path, " holds no run; start one without --resume");
  if (if_exists == IfExists::kRefuse && !fresh)
    fail("the run folder ", path,
         " exists already; go on with --resume, replace it with --overwrite or choose another");
  if (if_exists == IfExists::kOverwrite && !fresh && !holds_a_run(run))
    fail("the folder ", path, " holds files that do not belong to a run; choose another folder");
  create_folder(path);
  run.lock_ = lock_folder(path);
  const std::string checkpoints = path + "/checkpoints";
  if (fs::is_symlink(fs::symlink_status(checkpoints, error)) && if_exists == IfExists::kOverwrite)
    fail(checkpoints, " is a link, and what it leads to is not deleted; remove the link or choose another folder");
  const std::vector<std::string> files = run.files();
  if (if_exists == IfExists::kOverwrite)
    for (const std::string& file : files) remove_file(file);
  create_folder(checkpoints);
  for (const std::string& file : files) remove_remains(file);
  return run;
}

RunFolder RunFolder::open(const std::string& path) {
  RunFolder run(path);
  if (!fs::exists(run.config()))
    fail(path, " is no run folder: it has no config.toml; name the folder that train wrote");
  return run;
}

// env.json last: until it is gone, the folder counts as a run.
std::vector<std::string> RunFolder::files() const {
  return {done(), report(), metrics(), checkpoint("last"), checkpoint("best"), config(), env()};
}

bool RunFolder::has_checkpoint(const std::string& name) const { return fs::exists(checkpoint(name)); }
bool RunFolder::is_done() const { return fs::exists(done()); }
void RunFolder::mark_done() const { write_file_atomically(done(), ""); }
void RunFolder::clear_done() const { remove_file(done()); }

}  // namespace sparsight
