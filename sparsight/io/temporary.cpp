#include "sparsight/io/temporary.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "sparsight/core/error.h"
#include "sparsight/core/output_file.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/file_lock.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;  // as many as Linux follows

void remove_if_stale(const fs::path& path) {
  std::error_code ignored;
  const fs::file_type type = fs::symlink_status(path, ignored).type();
  const bool folder = type == fs::file_type::directory;
  if (!folder && type != fs::file_type::regular) return;
  const Descriptor held(open(path.c_str(), (folder ? O_RDONLY | O_DIRECTORY : O_RDWR) | O_CLOEXEC | O_NOFOLLOW));
  if (held.get() < 0 || flock(held.get(), LOCK_EX | LOCK_NB) != 0 || !is_same_file(held.get(), path)) return;
  fs::remove_all(path, ignored);
}

}  // namespace

bool is_temporary_for(std::string_view of, std::string_view name) {
  if (!name.starts_with(of) || !name.ends_with(kTemporaryEnding) || name.size() <= of.size() + kTemporaryEnding.size())
    return false;
  std::string_view number = name.substr(of.size(), name.size() - of.size() - kTemporaryEnding.size());
  if (number.front() != '.' || std::ranges::count(number, '-') != 1) return false;
  return number.substr(1).find_first_not_of("0123456789-") == std::string_view::npos;
}

std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> count{0};
  return cat(path, ".", getpid(), "-", count++, kTemporaryEnding);
}

std::string behind_links(const std::string& path) {
  fs::path resolved(path);
  for (int links = 0; links <= kMaxLinks; ++links) {
    std::error_code error;
    if (!fs::is_symlink(fs::symlink_status(resolved, error))) return resolved.native();
    const fs::path target = fs::read_symlink(resolved, error);
    if (error) fail_system("read the link", resolved.native(), error.value());
    resolved = target.is_absolute() ? target : resolved.parent_path() / target;
  }
  fail("cannot write ", printable(path), ": its links lead in a circle; remove the link or choose another path");
}

void remove_stale_temporaries(const std::string& path) {
  const fs::path target(path), folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  const std::string name = target.filename().native();
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (is_temporary_for(name, entry->path().filename().native())) found.push_back(entry->path());
  for (const fs::path& temporary : found) remove_if_stale(temporary);
}

}  // namespace sparsight
