#include "sparsight/report/run/superclass_text.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/report/format.h"

namespace sparsight {
namespace {

constexpr size_t kListedMembers = 10;
constexpr size_t kLongestExpertName = 24;
constexpr double kMaxShownWeights = 1e15;  // a damaged log has more

std::string members_text(const std::vector<std::string>& members) {
  std::string text;
  for (size_t i = 0; i < std::min(kListedMembers, members.size()); ++i) text += (i > 0 ? ", " : "") + members[i];
  return members.size() <= kListedMembers ? text : cat(text, " and ", members.size() - kListedMembers, " more");
}

std::string decimal_or_dash(std::optional<double> value, int decimals) { return value ? fixed(*value, decimals) : "-"; }

// "1.39 of 1.39" nats: ln E if every expert is used alike.
std::string entropy_text(const Json& layer) {
  const auto entropy = number(layer, "usage_entropy");
  const size_t experts = member(layer, "load").size();
  if (!entropy) return "-";
  return fixed(*entropy, 3) + (experts > 0 ? " of " + fixed(std::log(static_cast<double>(experts)), 3) : "");
}

// "1.00" if all images have as many, else "7.42, at most 10".
std::string experts_per_image_text(const Json& layer) {
  const auto mean = number(layer, "experts_per_image"), most = number(layer, "experts_per_image_max");
  if (!mean || !most || *mean == *most) return decimal_or_dash(mean, 2);
  return fixed(*mean, 2) + ", at most " + fixed(*most, 0);
}

}  // namespace

Rows superclass_rows(const std::vector<int64_t>& super_class_of, const std::vector<std::string>& names,
                     const std::vector<std::string>& classes) {
  Rows rows = {{"super-class", "name", "classes", "members"}};
  std::vector<std::vector<std::string>> members(names.size());
  for (size_t k = 0; k < super_class_of.size(); ++k) {
    if (super_class_of[k] < 0 || super_class_of[k] >= std::ssize(names)) return rows;
    members[static_cast<size_t>(super_class_of[k])].push_back(k < classes.size() ? classes[k] : std::to_string(k));
  }
  for (size_t group = 0; group < names.size(); ++group)
    rows.push_back(
        {std::to_string(group), names[group], std::to_string(members[group].size()), members_text(members[group])});
  return rows;
}

Rows router_measure_rows(const Json& layers) {
  Rows rows = {{"MoE layer", "entropy of usage", "experts per image", "router accuracy"}};
  if (!layers.is_array()) return rows;
  bool guided = false;
  for (const Json& layer : layers) {
    if (!number(layer, "experts_per_image")) continue;
    guided = guided || number(layer, "router_accuracy");
    rows.push_back({text(layer, "layer"), entropy_text(layer), experts_per_image_text(layer),
                    percent(number(layer, "router_accuracy"))});
  }
  if (!guided)
    for (std::vector<std::string>& row : rows) row.pop_back();
  return rows;
}

std::string touched_text(const Json& eval) {
  const Json& touched = member(eval, "touched");
  const auto mean = number(touched, "parameters"), most = number(touched, "parameters_max"),
             bytes = number(touched, "bytes");
  if (!mean || !most || !bytes ||
      !(*mean >= 0 && *most >= *mean && *most < kMaxShownWeights && *bytes < kMaxShownWeights))
    return "";
  return cat("weights touched per image: ", grouped(std::llround(*mean)), " parameters (", fixed(*bytes / 1e6, 2),
             " MB in fp32)", *most > *mean ? ", at most " + grouped(std::llround(*most)) : "");
}

std::vector<std::string> expert_names(const std::vector<std::string>& super_classes) {
  std::vector<std::string> names;
  for (size_t e = 0; e < super_classes.size(); ++e) {
    const std::string& name = super_classes[e];
    size_t end = std::min(name.size(), kLongestExpertName);
    while (end < name.size() && end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
    names.push_back(cat(e, " ", name.substr(0, end), end < name.size() ? "..." : ""));
  }
  return names;
}

}  // namespace sparsight
