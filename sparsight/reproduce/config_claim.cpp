#include "sparsight/reproduce/config_claim.h"

#include <cmath>
#include <filesystem>
#include <regex>
#include <sstream>

#include <nlohmann/json.hpp>

#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/limits.h"
#include "sparsight/core/printable.h"
#include "sparsight/eval/statistics.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/metrics_log.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/report/format.h"
#include "sparsight/report/run/run_metrics.h"
#include "sparsight/train/run_config.h"
#include "sparsight/train/train_run.h"

namespace sparsight {
namespace {

ConfigClaim parse_claim(const std::string& text, const std::string& where) {
  static const std::regex accuracy("(test|validation) accuracy (>=|<=) ([0-9]{1,3}(?:\\.[0-9]{1,6})?) %");
  static const std::regex loss("(test|validation) loss (>=|<=) ([0-9]{1,6}(?:\\.[0-9]{1,6})?)");
  std::smatch parts;
  const bool is_accuracy = std::regex_match(text, parts, accuracy);
  if (!is_accuracy && !std::regex_match(text, parts, loss))
    fail_usage(where, ": the claim \"", printable(text),
               "\" cannot be parsed; write it as \"test accuracy >= 97.0 %\" or \"validation loss <= 0.25\"");
  ConfigClaim claim{parts[1] == "test" ? "test" : "val", is_accuracy ? "accuracy" : "loss",
                    parts[2] == ">=", std::stod(parts[3]), text};
  if (is_accuracy && claim.level > 100) fail_usage(where, ": an accuracy is at most 100 %, got ", claim.level);
  return claim;
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

// " (95 % CI: 97.18 to 97.79)": interval of an accuracy on that many images; "" if their number is unknown.
std::string accuracy_interval(double accuracy, const std::optional<double>& images) {
  if (!images || !(*images >= 1 && *images <= 1e15) || !(accuracy >= 0 && accuracy <= 1)) return "";
  const auto count = static_cast<int64_t>(*images);
  const Interval interval = wilson_interval(std::llround(accuracy * static_cast<double>(count)), count);
  return cat(" (95 % CI: ", fixed(100 * interval.low, 2), " to ", fixed(100 * interval.high, 2), ")");
}

Json resolved_file(const std::string& path) { return resolve(Config::from_file(path), config_sections()); }

}  // namespace

std::vector<ConfigClaim> read_claims(const std::string& toml, const std::string& origin) {
  std::vector<ConfigClaim> claims;
  std::istringstream lines(toml);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    static const std::regex claim("\\s*#\\s*claim\\s*:(.*)", std::regex::icase);
    std::smatch parts;
    if (line.size() < 1000 && std::regex_match(line, parts, claim))
      claims.push_back(parse_claim(trimmed(parts[1]), cat(origin, ":", number)));
  }
  if (claims.empty())
    fail_usage(origin, " contains no claim; add a line such as \"# claim: test accuracy >= 97.0 %\" to its header");
  return claims;
}

std::vector<Claim> check_claims(const std::vector<ConfigClaim>& claims, const std::vector<Json>& metrics) {
  const RunMetrics log = sort_metrics(metrics);
  std::vector<Claim> checked;
  for (const ConfigClaim& claim : claims) {
    std::optional<double> value, images;
    for (const Json& eval : log.evals)
      if (text(eval, "split") == claim.split && is_reported(eval)) {
        value = number(eval, claim.measure);
        images = number(eval, "images");
      }
    if (!value) {
      checked.push_back(
          {claim.text, cat("the run has no ", claim.measure, " on the ", split_name(claim.split), " split"), {}});
      continue;
    }
    const bool percent = claim.measure == "accuracy";
    const std::string interval = percent ? accuracy_interval(*value, images) : "";
    if (percent) *value *= 100;
    checked.push_back({claim.text, percent ? fixed(*value, 2) + " %" + interval : fixed(*value, 4),
                       claim.at_least ? *value >= claim.level : *value <= claim.level});
  }
  return checked;
}

std::string default_claim_folder(const std::string& config) {
  return "runs/reproduce/" + std::filesystem::path(config).stem().string();
}

std::vector<Claim> reproduce_config(const std::string& config, const std::string& folder, std::ostream& out) {
  const std::vector<ConfigClaim> claims = read_claims(read_file(config, kMaxConfigBytes), config);
  const Json settings = resolved_file(config);
  if (const std::string begun = folder + "/config.toml"; std::filesystem::exists(begun)) {
    if (resolved_file(begun) != settings)
      fail(folder, " contains a run with different settings; choose another folder with --run");
    resume_training(folder, {.go_on = GoOn::same_command}, out);
  } else {
    start_training(settings, folder, /*overwrite=*/false, out, GoOn::same_command);
  }
  std::vector<Claim> checked = check_claims(claims, read_metrics(RunFolder::open(folder).metrics()));
  Json json = Json::array();
  for (const Claim& claim : checked)
    json.push_back(
        {{"claim", claim.text}, {"measured", claim.measured}, {"holds", claim.holds ? Json(*claim.holds) : Json()}});
  write_file_atomically(folder + "/claims.json", json_text(json, 2) + "\n");
  return checked;
}

}  // namespace sparsight
