#include "sparsight/reproduce/chart_images.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/jobs/child_process.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

constexpr int kNoPackage = 77;
constexpr const char* kAdvice = "charts as PNG and SVG need vl-convert-python (pip install vl-convert-python)";

// Files are written under a temporary name and renamed. Without the empty entry of its path, Python imports nothing
// from the working folder.
constexpr const char* kDrawingScript = R"(
import sys
sys.path[:] = [folder for folder in sys.path if folder]
import os
try:
    import vl_convert
except ImportError:
    sys.exit(77)
for name in sys.argv[1:]:
    with open(name + ".vl.json", encoding="utf-8") as file:
        spec = file.read()
    for ending, image in ((".svg", vl_convert.vegalite_to_svg(spec).encode()), (".png", vl_convert.vegalite_to_png(spec, scale=2))):
        aside = f"{name}{ending}.{os.getpid()}.tmp"
        with open(aside, "wb") as file:
            file.write(image)
        os.replace(aside, name + ending)
)";

// The Python of the repository that the program was built in: .venv/ beside the folder build/ that holds it. "" for an
// installed program.
std::string python_beside_program() {
  std::error_code none;  // without /proc nothing is known
  for (fs::path folder = fs::read_symlink("/proc/self/exe", none); folder.has_relative_path();
       folder = folder.parent_path()) {
    if (folder.filename() != "build") continue;
    const fs::path python = folder.parent_path() / ".venv/bin/python";
    if (access(python.c_str(), X_OK) == 0) return python;
  }
  return "";
}

}  // namespace

std::string python_program(const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  if (const char* python = std::getenv("SPARSIGHT_PYTHON"); python && *python) return python;
  const std::string beside = python_beside_program();
  return beside.empty() ? "python3" : beside;
}

std::string draw_charts(const std::vector<std::string>& names, const std::string& python) {
  std::error_code ignored;
  for (const std::string& name : names)
    for (const char* ending : {".svg", ".png"}) fs::remove(name + ending, ignored);
  if (names.empty()) return "";
  std::vector<std::string> command = {python, "-c", kDrawingScript};
  command.insert(command.end(), names.begin(), names.end());
  try {
    ChildProcess process(command);
    std::string last;
    const auto listen = [&] {  // so that a full pipe never blocks it
      for (const std::string& line : process.new_lines())
        if (!line.empty()) last = line;
    };
    while (!process.status()) {
      listen();
      usleep(20000);
    }
    listen();
    const int status = *process.status();
    if (status == 0) return "";
    if (WIFEXITED(status) && WEXITSTATUS(status) == kNoPackage) return cat(kAdvice, "; ", python, " does not have it");
    return cat("charts could not be written as PNG and SVG: ", python, " ", status_text(status),
               last.empty() ? "" : ": " + printable(last));
  } catch (const Error& error) {
    return cat(kAdvice, "; ", error.what());
  }
}

}  // namespace sparsight
