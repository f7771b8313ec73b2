#include "cli/spin_briefly.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

namespace sparsight::cli {
namespace {

// Restarts the program with its original arguments. A program that embeds this one may have passed others to main().
void start_again() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string words{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<char*> pointers;  // to the words, which are NUL-terminated
  for (size_t begin = 0; begin < words.size(); begin = words.find('\0', begin) + 1)
    pointers.push_back(words.data() + begin);
  pointers.push_back(nullptr);
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  // If the restart fails, this process carries on.
  if (!error && pointers.size() > 1 && setenv("GOMP_SPINCOUNT", "20000", 1) == 0)
    execv(program.c_str(), pointers.data());
}

}  // namespace

void spin_briefly(CLI::App* verb) {
  verb->preparse_callback([](size_t) {
    if (!std::getenv("GOMP_SPINCOUNT") && !std::getenv("OMP_WAIT_POLICY")) start_again();
  });
}

}  // namespace sparsight::cli
