#include "sparsight/io/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

bool is_empty_folder(const std::string& path) {
  std::error_code error;
  const bool empty = fs::is_directory(path, error) && fs::is_empty(path, error);
  if (error) fail_system("read the folder", path, error.value());
  return empty;
}

bool holds_a_run(const RunFolder& run) {
  return fs::exists(run.config()) || fs::exists(run.metrics()) || fs::exists(run.path() + "/checkpoints");
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) fail_system("remove", path.string(), error.value());
}

// Removes the files directly in `folder` whose name ends with `ending`.
void remove_files(const std::string& folder, std::string_view ending) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ending && entry.is_regular_file(error)) remove_file(entry.path());
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
  if (if_exists == IfExists::kOverwrite) {
    for (const std::string& file : {run.done(), run.config(), run.env(), run.metrics(), run.report()})
      remove_file(file);
    remove_files(path + "/checkpoints", ".safetensors");
  }
  create_folder(path + "/checkpoints");
  remove_files(path, kTemporaryEnding);
  remove_files(path + "/checkpoints", kTemporaryEnding);
  return run;
}

RunFolder RunFolder::open(const std::string& path) {
  RunFolder run(path);
  if (!fs::exists(run.config()))
    fail(path, " is no run folder: it has no config.toml; name the folder that train wrote");
  return run;
}

bool RunFolder::has_checkpoint(const std::string& name) const { return fs::exists(checkpoint(name)); }
bool RunFolder::is_done() const { return fs::exists(done()); }
void RunFolder::mark_done() const { write_file_atomically(done(), ""); }
void RunFolder::clear_done() const { remove_file(done()); }

}  // namespace sparsight
