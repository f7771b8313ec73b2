#include "sparsight/io/atomic_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "sparsight/core/error.h"
#include "sparsight/core/output_file.h"
#include "sparsight/core/path_text.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/file_lock.h"
#include "sparsight/io/temporary.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

}  // namespace

AtomicFolder::AtomicFolder(const std::string& path) : path_(behind_links(without_slashes_at_end(path))) {
  std::error_code ignored;
  if (path.empty()) fail("the folder to make has no name; name one");
  if (path_.empty() || fs::exists(fs::symlink_status(path_, ignored)))
    fail(printable(path), " exists already; choose another folder or remove it");
  if (const fs::path parent = fs::path(path_).parent_path(); !parent.empty()) create_folder(parent.native());
  remove_stale_temporaries(path_);
  make_temporary();
}

void AtomicFolder::make_temporary() {
  while (true) {
    const std::string name = temporary_name(path_);
    if (mkdir(name.c_str(), 0777) != 0) {
      if (errno == EEXIST) continue;
      fail_system("make the folder", path_, errno);
    }
    temporary_ = name;
    Descriptor folder(open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // Another process may have taken the new folder for a stale one.
    if (folder.get() < 0 || !lock_while_written(folder.get()) || !is_same_file(folder.get(), name)) continue;
    held_ = std::move(folder);
    return;
  }
}

AtomicFolder::~AtomicFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

void AtomicFolder::commit() {
  if (syncfs(held_.get()) != 0) fail_system("write", path_, errno);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail_system("make the folder", path_, errno);
  temporary_.clear();
}

}  // namespace sparsight
