#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/version.h>

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sparsight/io/run_folder.h"

namespace sparsight {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  return "unknown";
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts;
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace

Json describe_environment(const std::vector<std::string>& command_line) {
  return {{"sparsight", SPARSIGHT_VERSION},   {"torch", TORCH_VERSION},
          {"processor", processor_name()},    {"instruction_set", at::get_cpu_capability()},
          {"threads", at::get_num_threads()}, {"started", utc_now()},
          {"command", command_line}};
}

}  // namespace sparsight
