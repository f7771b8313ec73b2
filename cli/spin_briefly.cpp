#include "cli/spin_briefly.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace sparsight::cli {

void spin_briefly(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb != "train" && verb != "eval" && verb != "explain" && verb != "reproduce") return;
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY")) return;
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  // Where it cannot start itself, it goes on as it is.
  if (!error && setenv("GOMP_SPINCOUNT", "20000", 1) == 0) execv(program.c_str(), argv);
}

}  // namespace sparsight::cli
