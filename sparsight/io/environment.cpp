#include <ATen/Parallel.h>

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sparsight/core/engines.h"
#include "sparsight/core/machine.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/kernels/isa/isa.h"

namespace sparsight {
namespace {

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts;
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// Command line of this process, as the kernel reports it.
std::vector<std::string> command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(printable(word));
  return words;
}

}  // namespace

Json describe_environment() {
  Json faster = Json::object();
  for (const EngineUse use : kEngineUses) faster[engine_use_name(use)] = engine_name(engine_of(use));
  return {{"sparsight", SPARSIGHT_VERSION},
          {"torch", torch_version()},
          {"processor", processor_name()},
          {"instruction_set", instruction_set()},
          {"kernel_level", isa_name(active_isa())},
          {"threads", at::get_num_threads()},
          {"started", utc_now()},
          {"engines", std::move(faster)},
          {"command", command_line()}};
}

}  // namespace sparsight
