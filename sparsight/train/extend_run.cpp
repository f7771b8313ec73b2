#include "sparsight/train/extend_run.h"

#include <filesystem>

#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/limits.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/core/toml.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/checked_json.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/train/run_config.h"

namespace sparsight {
namespace {

constexpr int64_t kMaxEpochs = 1'000'000;  // of train.epochs

// An empty list without the file.
Json read_extensions(const RunFolder& folder) {
  if (!std::filesystem::exists(folder.extensions())) return Json::array();
  const std::string file = folder.extensions();
  const Json list = member(parse_checked_object(read_file(file, kMaxTextBytes), printable(file)), "extensions");
  if (!list.is_array()) fail(printable(file), " has no list \"extensions\"");
  return list;
}

// train.epochs of the configuration that the last checkpoint was trained with; null without one.
Json trained_epochs(const RunFolder& folder) {
  if (!folder.has_checkpoint("last")) return Json();
  const auto metadata = read_checkpoint_metadata(folder.checkpoint("last"));
  const auto config = metadata.find("config");
  if (config == metadata.end()) return Json();
  return member(member(try_parse_json_object(config->second).value_or(Json::object()), "train"), "epochs");
}

// Records the extension, then makes it.
void write_extension(const RunFolder& folder, Config config, Json extensions, int64_t from, int64_t to) {
  extensions.push_back({{"from", from}, {"to", to}});
  write_file_atomically(folder.extensions(), checked_json_file({{"extensions", extensions}}));
  config.set("train", "epochs", to, "extension");
  write_file_atomically(folder.config(), to_toml(resolve(config, config_sections())));
  log_info("extended from ", from, " to ", to, " epochs");
}

}  // namespace

void extend_run(const RunFolder& folder, int64_t epochs) {
  const Config config = Config::from_text(read_file(folder.config(), kMaxConfigBytes), folder.config());
  const Json train = resolve(config, config_sections())["train"];
  const int64_t now = train["epochs"], steps = train["max_steps"];
  Json extensions = read_extensions(folder);
  const bool begun = !extensions.empty() && member(extensions.back(), "to") == now;
  if (begun && !(folder.is_done() && trained_epochs(folder) == now)) {
    log_info("the run is being extended to ", now, " epochs: going on with that");
  } else {
    const std::string run = printable(folder.path());
    if (!folder.is_done()) fail_usage("the run ", run, " is not finished; resume it to its end, then extend it");
    if (steps > 0)
      fail_usage("the run ", run, " ends with train.max_steps = ", steps, "; start a new one with --init-from");
    if (now + epochs > kMaxEpochs)
      fail_usage("a run has at most ", kMaxEpochs, " epochs, and this one would have ", now + epochs);
    if (!extensions.empty() && !begun) extensions.erase(extensions.size() - 1);  // interrupted before config.toml
    write_extension(folder, config, extensions, now, now + epochs);
  }
  folder.clear_done();
}

bool was_extended(const RunFolder& folder, const Json& from, const Json& to) {
  bool found = false;
  for (const Json& extension : read_extensions(folder)) {
    found = found || member(extension, "from") == from;
    if (found && member(extension, "to") == to) return true;
  }
  return false;
}

}  // namespace sparsight
