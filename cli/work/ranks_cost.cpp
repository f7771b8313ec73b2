// `sparsight cost CONFIG --ranks LIST`: a training step on several ranks, by cost/ranks_cost.h.
#include "sparsight/cost/ranks_cost.h"

#include <nlohmann/json.hpp>

#include "cli/cmd_config.h"
#include "cli/output.h"
#include "cli/work/product_rates.h"
#include "cli/work/read_config.h"
#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/number_text.h"
#include "sparsight/models/model_cost.h"
#include "sparsight/report/format.h"
#include "sparsight/reproduce/result_text.h"

namespace sparsight::cli {
namespace {

constexpr double kBackward = 2;       // the backward pass computes twice what the forward pass does
constexpr int64_t kStateNumbers = 4;  // per parameter: its value, its gradient, two moments of AdamW
constexpr int64_t kNumberBytes = 4;

struct Assumed {
  RankWork work;
  std::string compute;  // where its seconds are from
};

Assumed assumed_work(const ConfigCostArguments& arguments) {
  const std::vector<int64_t>& image = arguments.image;
  const ImageShape shape{image[0], image[1], image[2], arguments.classes};
  const Json config = resolved_config(arguments.config);
  const Cost cost = total(model_cost(config, shape));
  Assumed assumed;
  RankWork& work = assumed.work;
  work.minibatches = config.at("train").at("accumulate").get<int64_t>();
  work.images = config.at("loader").at("batch").get<int64_t>();
  work.layers = expert_exchanges(config, shape);
  work.other_parameters = cost.parameters;
  for (const ExpertExchange& layer : work.layers) work.other_parameters -= layer.parameters;
  if (arguments.step_seconds > 0) {
    work.compute_seconds = arguments.step_seconds;
    assumed.compute = cat("as given: ", arguments.step_seconds, " s");
    return assumed;
  }
  const double rate = arguments.flops_per_second > 0 ? arguments.flops_per_second : 1e9 * measure_products().ours;
  const double operations = 2 * (1 + kBackward) * static_cast<double>(cost.multiply_adds) *
                            static_cast<double>(work.images * work.minibatches);
  work.compute_seconds = operations / rate;
  assumed.compute =
      cat("multiply-adds of the forward pass and twice as many of the backward pass, at ", fixed(rate / 1e9, 1),
          " GFLOP/s, ", arguments.flops_per_second > 0 ? "as given" : "what this machine does in matrix products");
  return assumed;
}

std::vector<std::string> assumptions(const Assumed& assumed) {
  const RankWork& work = assumed.work;
  std::vector<std::string> lines{
      cat("every rank trains on ", work.minibatches, work.minibatches == 1 ? " batch of " : " batches of ", work.images,
          " images per step, whatever their number"),
      "compute of a step: " + assumed.compute,
      cat(grouped(work.other_parameters),
          " parameters that all ranks have, in gradients of 4 bytes, summed by a "
          "reduce-scatter after each batch and one all-gather; nothing overlaps with computing"),
      "a message of n bytes takes alpha + n / beta; a rank talks to all others one after the other"};
  for (const ExpertExchange& layer : work.layers)
    lines.push_back(cat(layer.layer, ": ", grouped(layer.parameters), " parameters of ", layer.experts, " experts; ",
                        fixed(layer.rows, 1), " rows of an image travel, ", layer.width, " numbers there and ",
                        layer.outputs, " back, and their gradients; ranks get equally many"));
  lines.push_back(cat("memory of a rank: ", kStateNumbers * kNumberBytes,
                      " bytes per parameter (value, gradient, two moments), without activations"));
  return lines;
}

std::string network_text(const Network& network) {
  return cat(network.name, " (", network.summary, "): alpha ", fixed(1e6 * network.alpha, 0), " us, beta ",
             fixed(network.beta / 1e9, 2), " GB/s");
}

int64_t state_bytes(const RanksStep& step) { return checked_product(kStateNumbers * kNumberBytes, step.parameters); }

Json to_json(const RanksStep& step) {
  return {{"expert_ranks", step.expert_ranks}, {"seconds", step.seconds()},
          {"compute", step.compute},           {"sums", step.sums},
          {"exchanges", step.exchanges},       {"efficiency", step.efficiency()},
          {"parameters", step.parameters},     {"state_bytes", state_bytes(step)}};
}

Json to_json(const std::optional<RanksStep>& step) { return step ? to_json(*step) : Json(); }

Json network_json(const Network& network, const RankWork& work, const std::vector<int64_t>& ranks) {
  Json rows = Json::array();
  for (const int64_t count : ranks) {
    const RanksChoice choice = ranks_choice(work, count, network);
    rows.push_back({{"ranks", count},
                    {"data", to_json(choice.data)},
                    {"expert", to_json(choice.experts)},
                    {"both", to_json(choice.both)},
                    {"best", choice.best()}});
  }
  return {{"name", network.name},
          {"summary", network.summary},
          {"alpha", network.alpha},
          {"beta", network.beta},
          {"ranks", std::move(rows)}};
}

std::string cell(const std::optional<RanksStep>& step, bool with_groups) {
  if (!step) return "-";
  std::string text = cat(fixed(1e3 * step->seconds(), 1), " (", fixed(100 * step->efficiency(), 0), " %, ",
                         fixed(static_cast<double>(state_bytes(*step)) / 1e6, 0), " MB)");
  return with_groups ? cat(text, " n = ", step->expert_ranks) : text;
}

std::string network_table(const Network& network, const RankWork& work, const std::vector<int64_t>& ranks) {
  TextTable table{{"ranks", "data", "expert", "both", "best"}, {true, true, true, true, false}, {}};
  for (const int64_t count : ranks) {
    const RanksChoice choice = ranks_choice(work, count, network);
    table.rows.push_back({std::to_string(count), cell(choice.data, false), cell(choice.experts, false),
                          cell(choice.both, true), choice.best()});
  }
  return cat(network_text(network), "\n\n", markdown_table(table));
}

}  // namespace

void run_ranks_cost(const ConfigCostArguments& arguments) {
  const Assumed assumed = assumed_work(arguments);
  const std::vector<int64_t> ranks = parse_ranks(arguments.ranks);
  std::vector<Network> chosen;
  for (const std::string& name : arguments.networks) chosen.push_back(find_network(name));
  if (chosen.empty()) chosen = networks();
  if (arguments.format == "json") {
    Json tables = Json::array();
    for (const Network& network : chosen) tables.push_back(network_json(network, assumed.work, ranks));
    output() << json_text({{"compute_seconds", assumed.work.compute_seconds},
                           {"images", assumed.work.images * assumed.work.minibatches},
                           {"networks", std::move(tables)},
                           {"assumptions", assumptions(assumed)}},
                          2)
             << "\n";
    return;
  }
  output() << "ms of a training step (share of it that computes, memory of a rank) by how it is spread over ranks:\n"
              "data: all have all parameters; expert: each has E / ranks experts; both: E / n\n\n";
  for (const Network& network : chosen) output() << network_table(network, assumed.work, ranks) << "\n";
  output() << "assumptions:\n";
  for (const std::string& line : assumptions(assumed)) output() << "- " << line << "\n";
}

}  // namespace sparsight::cli
