#include "sparsight/report/run/experts_per_token.h"

#include <algorithm>
#include <numeric>

#include "sparsight/report/format.h"

namespace sparsight {
namespace {

// " (1: 50 %, 2: 50 %)"; nothing if all tokens have the same number.
std::string shares_text(const std::vector<double>& tokens_with) {
  constexpr size_t kShown = 8;
  std::vector<size_t> present;
  for (size_t k = 0; k < tokens_with.size(); ++k)
    if (tokens_with[k] > 0) present.push_back(k);
  if (present.size() < 2) return "";
  const bool all = present.size() <= kShown;
  if (!all) {
    std::ranges::stable_sort(present, [&](size_t a, size_t b) { return tokens_with[a] > tokens_with[b]; });
    present.resize(kShown);
    std::ranges::sort(present);
  }
  const double tokens = std::accumulate(tokens_with.begin(), tokens_with.end(), 0.0);
  std::string text;
  for (const size_t k : present)
    text += (text.empty() ? "" : ", ") + std::to_string(k) + ": " + percent(tokens_with[k] / tokens, 0);
  return " (" + text + (all ? ")" : ", ...)");
}

}  // namespace

std::string experts_per_token_text(const ExpertsPerToken& experts) {
  if (!experts.chosen) return "-";
  std::string text = fixed(*experts.chosen, 2) + shares_text(experts.tokens_with);
  if (experts.kept && !experts.tokens_with_kept.empty())
    text += ", kept " + fixed(*experts.kept, 2) + shares_text(experts.tokens_with_kept);
  return text;
}

std::string layer_experts_per_token(const Json& layer) {
  return experts_per_token_text({number(layer, "experts_per_token"), number(layer, "kept_per_token"),
                                 numbers(member(layer, "tokens_with")), numbers(member(layer, "tokens_with_kept"))});
}

}  // namespace sparsight
