#include <ATen/Parallel.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/input_file.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/log.h"
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

std::string arithmetic_name() { return consistent_arithmetic() ? "consistent" : "fast"; }

// What decides how kernels round.
std::string rounding_name(const std::string& level, const std::string& arithmetic) {
  return arithmetic == "consistent" ? arithmetic : level;
}

}  // namespace

Json describe_environment() {
  return {{"sparsight", SPARSIGHT_VERSION},       {"torch", torch_version()},     {"processor", processor_name()},
          {"instruction_set", instruction_set()}, {"kernel_level", active_isa()}, {"arithmetic", arithmetic_name()},
          {"threads", at::get_num_threads()},     {"started", utc_now()},         {"command", command_line()}};
}

void warn_of_other_kernels(const std::string& env_file) {
  constexpr size_t kMaxBytes = size_t{1} << 20;
  if (!std::filesystem::exists(env_file)) return;
  try {
    const Json environment = parse_json_object(read_file(env_file, kMaxBytes), env_file);
    const std::string began = rounding_name(text(environment, "kernel_level"), text(environment, "arithmetic")),
                      now = rounding_name(active_isa(), arithmetic_name());
    if (!began.empty() && began != now)
      log_warning(printable(env_file), ": began with ", printable(began), " kernels and goes on with ", now,
                  " ones, which round differently: the result is not that of an unbroken run to the last bit");
    // Earlier versions chose between the kernels and oneDNN by a measurement.
    const Json engines = member(environment, "engines");
    if (engines.is_object() && std::ranges::any_of(engines, [](const Json& name) { return name == "oneDNN"; }))
      log_warning(printable(env_file), ": began with layers on oneDNN and goes on with the kernels, which round ",
                  "differently: the result is not that of an unbroken run to the last bit");
  } catch (const Error& error) {
    log_warning("the kernels that this folder began with are not known: ", error.what());
  }
}

}  // namespace sparsight
