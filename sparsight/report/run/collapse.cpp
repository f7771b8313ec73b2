#include "sparsight/report/run/collapse.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/number_text.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

constexpr double kDeadShare = 0.01;   // of an even share of the assignments
constexpr double kCollapsed = 0.15;   // of the way from one set of experts for all to an even use
constexpr double kMuchDropped = 0.2;  // of the assignments
constexpr size_t kListedExperts = 8;

std::string layer_name(const Json& layer) { return printable(text(layer, "layer")); }

std::vector<double> shares_of(const Json& layer) {
  std::vector<double> load = numbers(member(layer, "load"));
  const double sum = std::accumulate(load.begin(), load.end(), 0.0);
  if (!(sum > 0)) return {};
  for (double& value : load) value /= sum;
  return load;
}

// How many experts that are used evenly have this entropy.
double effective_experts(const std::vector<double>& shares) {
  double entropy = 0;
  for (const double share : shares)
    if (share > 0) entropy -= share * std::log(share);
  return std::exp(entropy);
}

std::string listed(const std::vector<size_t>& experts) {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(experts.size(), kListedExperts); ++i) names.push_back(std::to_string(experts[i]));
  if (experts.size() > kListedExperts) names.emplace_back("...");
  return join(names);
}

void add_collapsed(const Json& layer, const std::vector<double>& shares, std::vector<std::string>& found) {
  const auto experts = static_cast<double>(shares.size());
  const double chosen = std::max(1.0, number(layer, "experts_per_token").value_or(1));
  const double used = effective_experts(shares);
  if (experts <= chosen || (used - chosen) / (experts - chosen) >= kCollapsed) return;
  std::vector<double> sorted = shares;
  std::ranges::sort(sorted, std::greater<>());
  const auto few = static_cast<size_t>(std::ceil(used - 1e-6));
  const double theirs = std::accumulate(sorted.begin(), sorted.begin() + static_cast<int64_t>(few), 0.0);
  found.push_back(cat(layer_name(layer), ": its router collapsed: ", few, " of ", shares.size(), " experts ",
                      few == 1 ? "gets " : "get ", percent(theirs, 1), " of all that is routed"));
}

void add_dead(const Json& layer, const std::vector<double>& shares, std::vector<std::string>& found) {
  std::vector<size_t> dead;
  for (size_t e = 0; e < shares.size(); ++e)
    if (shares[e] * static_cast<double>(shares.size()) < kDeadShare) dead.push_back(e);
  if (!dead.empty())
    found.push_back(cat(layer_name(layer), ": ", dead.size(), " of ", shares.size(), " experts ",
                        dead.size() == 1 ? "is" : "are", " dead, with under ", percent(kDeadShare, 0),
                        " of an even share: ", listed(dead)));
}

// Names of the auxiliary losses of the last step that was logged.
std::vector<std::string> names_of_losses(const RunMetrics& log) {
  std::vector<std::string> names;
  const Json& losses = member(log.train.back(), "losses");
  for (auto loss = losses.begin(); losses.is_object() && loss != losses.end(); ++loss) names.push_back(loss.key());
  return names;
}

bool router_is_frozen(const Json& config) {
  const Json& frozen = member(member(config, "train"), "freeze");
  return frozen.is_array() && std::ranges::any_of(frozen, [](const Json& pattern) {
           return pattern.is_string() && pattern.get<std::string>().find("router") != std::string::npos;
         });
}

}  // namespace

std::vector<std::string> find_collapse(const Json& layers) {
  std::vector<std::string> found;
  if (!layers.is_array()) return found;
  for (const Json& layer : layers) {
    if (const std::vector<double> shares = shares_of(layer); !shares.empty()) {
      add_collapsed(layer, shares, found);
      add_dead(layer, shares, found);
    }
    if (const double dropped = number(layer, "dropped").value_or(0); dropped > kMuchDropped)
      found.push_back(cat(layer_name(layer), ": capacity drops ", percent(dropped, 0),
                          " of the assignments; raise capacity.factor or balance the experts"));
  }
  return found;
}

std::vector<std::string> find_collapse(const RunMetrics& log, const Json& config) {
  std::vector<std::string> found = find_collapse(member(final_eval(log, true), "layers"));
  if (log.train.empty()) return found;  // an evaluation alone does not know how its model was trained
  if (std::ranges::none_of(found, [](const std::string& line) { return line.find("expert") != std::string::npos; }))
    return found;
  const std::vector<std::string> losses = names_of_losses(log);
  if (router_is_frozen(config))
    found.emplace_back("train.freeze keeps the router's weights as they are, so that no balance loss reaches them");
  else if (losses.empty())
    found.emplace_back(
        "no auxiliary loss balanced the experts; train with --set losses.switch=0.01, or with a router that balances "
        "them itself, such as --set router.name=sigmoid_bias");
  else
    found.push_back(cat("the auxiliary losses of this training did not balance the experts: ", join(losses),
                        "; raise their weights in [losses], or lower optimizer.lr"));
  return found;
}

}  // namespace sparsight
