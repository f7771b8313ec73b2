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

}  // namespace

void set_arguments(char** argv) { arguments = argv; }

void start_full_program() {
  std::error_code error;
  const std::filesystem::path front = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) fail("cannot find the program's own folder: /proc/self/exe: ", error.message(), "; is /proc mounted?");
  // Installed and in the build folder the same way up and down.
  const std::string full = (front.parent_path() / SPARSIGHT_FULL_PROGRAM).lexically_normal();
  setenv(kFrontVariable, front.c_str(), 1);
  execv(full.c_str(), arguments);
  fail("cannot start ", full, ": ", std::strerror(errno),
       "; the program needs it there: install both with cmake --install, or link to this one instead of copying it");
}

}  // namespace sparsight::cli
