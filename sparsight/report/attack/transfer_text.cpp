#include "sparsight/report/attack/transfer_text.h"

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/report/attack/attack_routing_text.h"
#include "sparsight/report/attack/attack_text.h"
#include "sparsight/report/format.h"

namespace sparsight {
namespace {

std::vector<std::string> model_row(const std::string& role, const std::string& path, const Json& shares) {
  std::vector<std::string> cells{role, path};
  for (const char* key : {"clean_accuracy", "robust_accuracy", "success_rate"}) {
    const Json& share = member(shares, key);
    const auto value = number(share, "value");
    cells.push_back(value ? fixed(100 * *value, 2) + " %" : "-");
    cells.push_back(attack_interval_text(share));
  }
  return cells;
}

}  // namespace

std::string transfer_text(const Json& result) {
  const Json &source = member(result, "source"), &threat = member(result, "threat");
  const std::string target = attack_target_text(result);
  std::string lines = cat(static_cast<int64_t>(number(result, "images").value_or(0)), " images of ",
                          text(member(result, "data"), "name"), ", ", text(member(result, "attack"), "name"), ", ",
                          text(threat, "norm"), ", epsilon ", text(threat, "given"),
                          target.empty() ? "" : ", targeted at " + target, "\n\n");
  lines += aligned({{"", "model", "clean", "95 % CI", "robust", "95 % CI", "success", "95 % CI"},
                    model_row("attacked", text(source, "path"), source),
                    model_row("evaluated", text(member(result, "model"), "path"), result)});
  if (!member(result, "routing").empty())
    lines += cat("\nrouting of the evaluated model\n", aligned(attack_routing_rows(result)));
  return lines;
}

}  // namespace sparsight
