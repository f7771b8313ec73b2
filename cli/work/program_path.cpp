#include "cli/work/program_path.h"

#include <cstdlib>
#include <filesystem>

#include "cli/front/start_full_program.h"

namespace sparsight::cli {
namespace {

std::string take_program_path() {
  const char* front = std::getenv(kFrontVariable);
  std::error_code none;  // without /proc nothing is known
  std::string path = front ? front : std::filesystem::read_symlink("/proc/self/exe", none).string();
  unsetenv(kFrontVariable);
  return path;
}

}  // namespace

const std::string& program_path() {
  static const std::string path = take_program_path();
  return path;
}

}  // namespace sparsight::cli
