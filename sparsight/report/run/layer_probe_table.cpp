#include "sparsight/report/run/layer_probe_table.h"

#include <cstdio>

#include "sparsight/core/error.h"
#include "sparsight/moe/routing_stats.h"
#include "sparsight/report/format.h"
#include "sparsight/report/run/experts_per_token.h"

namespace sparsight {
namespace {

constexpr size_t kShownExperts = 64;

template <class... Values>
std::string line(const char* form, Values... values) {
  char text[160];
  std::snprintf(text, sizeof text, form, values...);
  return text;
}

std::string expert_lines(const Routing& routing, const RoutingStats& stats) {
  const at::Tensor kept = routing.offsets.diff().contiguous();
  std::string text = line("%6s  %8s  %8s  %10s  %10s\n", "expert", "chosen", "kept", "importance", "load");
  for (size_t e = 0; e < std::min(stats.count.size(), kShownExperts); ++e)
    text += line("%6zu  %8.0f  %8lld  %10.4f  %10.4f\n", e, stats.count[e],
                 static_cast<long long>(kept.const_data_ptr<int64_t>()[e]), stats.importance[e], stats.smooth_load[e]);
  if (stats.count.size() > kShownExperts) text += cat("  ... and ", stats.count.size() - kShownExperts, " more\n");
  return text;
}

std::string metric_lines(const RoutingStats& stats) {
  return line("CV(importance) %.4f   CV(load) %.4f   max/mean load %.3f   max/mean count %.3f\n", stats.cv_importance,
              stats.cv_load, stats.max_over_mean_load, stats.max_over_mean_count) +
         line("dropped %s   mean top gate %.4f\n", percent(stats.dropped).c_str(), stats.mean_top_gate) +
         cat("experts per token ",
             experts_per_token_text({stats.experts_per_token, stats.kept_per_token, stats.tokens_with,
                                     stats.dropped > 0 ? stats.tokens_with_kept : std::vector<double>()}),
             "\n");
}

}  // namespace

std::string layer_probe_table(const LayerProbe& probe) {
  if (probe.output.routing.soft) {
    const SoftRouting& soft = *probe.output.routing.soft;
    return cat(soft.layout.images, " images of ", soft.layout.per_image, " tokens, mixed into ", soft.slots,
               " slots of ", soft.experts, " experts\n");
  }
  const Routing& routing = probe.output.routing;
  const RoutingStats stats = routing_stats(routing);
  std::string text = cat(routing.tokens, " tokens, ", routing.experts, " experts, ", routing.token.size(0),
                         " assignments, ", routing.order.size(0), " kept\n\n", expert_lines(routing, stats), "\n");
  for (const NamedLoss& loss : probe.output.routing.losses)
    text += line("loss %-18s %.6f   weight %g\n", loss.name.c_str(), loss.value.item<double>(), loss.weight);
  for (const RoutingMetric& metric : routing.metrics) text += cat("router ", metric.name, " ", metric.value, "\n");
  return text + metric_lines(stats);
}

}  // namespace sparsight
