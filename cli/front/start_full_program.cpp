#include "cli/front/start_full_program.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "sparsight/core/error.h"

namespace sparsight::cli {
namespace {

char** arguments = nullptr;

// Read by glibc when a program starts; what the user has set there stays. Loading libtorch allocates 40 MB in small
// pieces: from large pages, and 16 MB at a time, it takes a fifth less time.
constexpr const char *kMallocVariable = "GLIBC_TUNABLES",
                     *kMallocSettings = "glibc.malloc.hugetlb=1:glibc.malloc.top_pad=16777216";

}  // namespace

void set_arguments(char** argv) { arguments = argv; }

void start_full_program() {
  std::error_code error;
  const std::filesystem::path front = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) fail("cannot find the program's own folder: /proc/self/exe: ", error.message(), "; is /proc mounted?");
  // Installed and in the build folder the same way up and down.
  const std::string full = (front.parent_path() / SPARSIGHT_FULL_PROGRAM).lexically_normal();
  setenv(kFrontVariable, front.c_str(), 1);
  setenv(kMallocVariable, kMallocSettings, /*overwrite=*/0);
  execv(full.c_str(), arguments);
  fail("cannot start ", full, ": ", std::strerror(errno),
       "; the program needs it there: install both with cmake --install, or link to this one instead of copying it");
}

}  // namespace sparsight::cli
