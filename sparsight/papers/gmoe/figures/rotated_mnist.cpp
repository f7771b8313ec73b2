#include <algorithm>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/gmoe/figures/mnist_protocol.h"
#include "sparsight/papers/gmoe/figures/protocol_figures.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::gmoe {
namespace {

constexpr const char* kRotated = "rotated_mnist";
constexpr double kRotatedPoints = 10;  // from the published average

ProtocolOptions rotated_options(Scale scale) {
  return mnist_options(
      scale,
      {.repeats = {.trials = 3}, .steps = 1501, .eval_every = 1500, .images = 1500, .batch = 3, .precision = "auto"});
}

// Training surrounds every other rotation on both sides.
Claim ends_are_hardest(const ResultTable& table) {
  std::vector<Json> all = table.axis_values("environment");
  std::erase(all, Json(kAverage));
  std::vector<Margin> margins;
  for (size_t e = 1; e + 1 < all.size(); ++e)
    for (const Json& end : {all.front(), all.back()})
      margins.push_back({row_difference({{"environment", all[e]}}, {{"environment", end}}, "accuracy"),
                         cat(all[e].get<std::string>(), " above ", end.get<std::string>(), " degrees")});
  return judge(table, "the rotations at the ends of the range are the hardest", margins);
}

}  // namespace

Figure rotated_mnist_figure() {
  Figure figure = mnist_figure(kRotated, rotated_options);
  figure.name = "gmoe/rotated_mnist";
  figure.title = "ERM on RotatedMNIST by the protocol of DomainBed, each rotation left out once";
  figure.duration = "smoke 10 s, small 20 min, paper days, on 2 cores";
  figure.claims = [](const ResultTable& table, const FigureRun&) {
    return std::vector<Claim>{near_published(table, kRotated, kRotatedPoints), ends_are_hardest(table)};
  };
  return figure;
}

}  // namespace sparsight::gmoe
