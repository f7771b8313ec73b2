#include "sparsight/dist/join.h"

#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>

#include "sparsight/core/error.h"
#include "sparsight/dist/gloo_group.h"

namespace sparsight::dist {
namespace {

std::string text_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

std::optional<int64_t> number_variable(const char* name, int64_t least, int64_t most) {
  const std::string text = text_variable(name);
  if (text.empty()) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    fail_usage("the environment variable ", name, " is \"", text, "\"; a launcher sets it to a number from ", least,
               " to ", most);
  return value;
}

}  // namespace

GroupPtr join_group() {
  constexpr int64_t kMost = 100'000;
  const std::optional<int64_t> size = number_variable("WORLD_SIZE", 1, kMost);
  if (!size) return std::make_shared<Group>();
  const std::optional<int64_t> rank = number_variable("RANK", 0, *size - 1);
  if (!rank) fail_usage("WORLD_SIZE is set, but RANK is not; start the processes with torchrun or --processes");
  GlooSettings settings{*rank, *size};
  settings.restarts = number_variable("TORCHELASTIC_RESTART_COUNT", 0, kMost).value_or(0);
  settings.timeout_seconds = number_variable("SPARSIGHT_DIST_TIMEOUT", 1, 1'000'000).value_or(settings.timeout_seconds);
  settings.token = text_variable("SPARSIGHT_RUN_TOKEN");
  if (settings.token.empty()) settings.token = text_variable("TORCHELASTIC_RUN_ID");
  settings.store_file = text_variable("SPARSIGHT_STORE");
  if (settings.store_file.empty()) {
    settings.address = text_variable("MASTER_ADDR");
    settings.port = number_variable("MASTER_PORT", 1, std::numeric_limits<uint16_t>::max()).value_or(0);
    if (settings.address.empty() || settings.port == 0)
      fail_usage("WORLD_SIZE is set, but MASTER_ADDR and MASTER_PORT are not; start the processes with torchrun");
    settings.launcher_serves = text_variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
  }
  return join_gloo(settings);
}

}  // namespace sparsight::dist
