#include "sparsight/io/sharded_names.h"

#include <charconv>

namespace sparsight {
namespace {

constexpr std::string_view kExperts = "experts.";

// Behind the last module "experts." of a name, or npos.
size_t behind_experts(const std::string& name) {
  const size_t at = name.rfind(kExperts);
  if (at == std::string::npos || (at > 0 && name[at - 1] != '.' && name[at - 1] != '/')) return std::string::npos;
  return at + kExperts.size();
}

}  // namespace

std::optional<ExpertTensorName> parse_stacked_name(const std::string& name) {
  const size_t rest = behind_experts(name);
  if (rest == std::string::npos || rest == name.size() || name.find('.', rest) != std::string::npos)
    return std::nullopt;
  return ExpertTensorName{name.substr(0, rest), name.substr(rest)};
}

std::optional<SingleExpertName> parse_single_name(const std::string& name) {
  const size_t number = behind_experts(name);
  if (number == std::string::npos) return std::nullopt;
  const size_t dot = name.find('.', number);
  if (dot == std::string::npos || dot + 1 == name.size() || name.find('.', dot + 1) != std::string::npos)
    return std::nullopt;
  SingleExpertName single{{name.substr(0, number), name.substr(dot + 1)}, 0};
  const auto [end, error] = std::from_chars(&name[number], &name[dot], single.expert);
  if (error != std::errc() || end != &name[dot] || single.expert < 0) return std::nullopt;
  return single;
}

}  // namespace sparsight
