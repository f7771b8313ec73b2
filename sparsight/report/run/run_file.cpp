#include "sparsight/report/run/run_file.h"

#include <algorithm>
#include <filesystem>

#include "sparsight/core/error.h"
#include "sparsight/io/atomic_file.h"

namespace sparsight {

std::string read_run_file(const std::string& run, const std::string& name, size_t max_bytes) {
  namespace fs = std::filesystem;
  const std::string path = run + "/" + name;
  std::error_code error;
  const fs::path folder = fs::canonical(run, error);
  if (error) fail_system("read", run, error.value());
  const fs::path file = fs::canonical(path, error);
  if (error) fail_system("read", path, error.value());
  if (std::ranges::mismatch(folder, file).in1 != folder.end())
    fail(path, " is left out: it leads out of the run folder, to ", file.string());
  if (!fs::is_regular_file(file, error)) fail(path, " is left out: it is not a regular file");
  return read_file(file.string(), max_bytes);
}

}  // namespace sparsight
