#include "sparsight/dg/random_range.h"

#include <cmath>
#include <optional>
#include <regex>
#include <vector>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

// What U is the exponent of: "" for U itself.
double raised(const std::string& base, double exponent) {
  return base.empty() ? exponent : std::pow(std::stod(base), exponent);
}

nlohmann::ordered_json choose_one(const nlohmann::ordered_json& list, NumpyRandom& random) {
  return list.at(static_cast<size_t>(random.below(static_cast<int64_t>(list.size()))));
}

std::optional<nlohmann::ordered_json> list_in_braces(const std::string& range) {
  if (range.size() < 3 || range.front() != '{' || range.back() != '}') return std::nullopt;
  const auto list = nlohmann::ordered_json::parse("[" + range.substr(1, range.size() - 2) + "]", nullptr, false);
  if (list.is_discarded() || list.empty()) return std::nullopt;
  return list;
}

}  // namespace

nlohmann::ordered_json sample_range(const std::string& range, NumpyRandom& random) {
  static const std::regex uniform(R"((floor\()?(?:(\d+)\^)?U\((-?[\d.]+),(-?[\d.]+)\)(\))?)");
  if (const auto list = list_in_braces(range)) return choose_one(*list, random);
  std::smatch match;
  if (!std::regex_match(range, match, uniform) || match[1].matched != match[5].matched)
    fail("a range of random search is like 10^U(-5,-3.5), floor(2^U(3,5)), U(0,1) or {0,0.1}, got ", range);
  const double value = raised(match[2], random.uniform(std::stod(match[3]), std::stod(match[4])));
  if (match[1].matched) return static_cast<int64_t>(std::floor(value));
  return value;
}

}  // namespace sparsight
