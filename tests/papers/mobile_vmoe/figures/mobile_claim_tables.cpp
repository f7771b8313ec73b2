// Results of the figures on Mobile V-MoE for which their claims hold, and for which they fail.
#include <cmath>

#include "sparsight/papers/mobile_vmoe/experiments/mobile_models.h"
#include "sparsight/papers/mobile_vmoe/figures/mobile_figures.h"
#include "tests/papers/claim_tables.h"

namespace sparsight::testing {
namespace {

using namespace mobile_vmoe;

// gain: of the routed model, for each of 12 blocks less than the paper's deepest model has, plus `least`.
ClaimResult sizes_table(double least, double growth) {
  return [=](const Json& job) {
    const auto fewer = static_cast<double>(12 - read_size(job.at("size")).depth);
    return Json{{"accuracy", job.at("model") == kMoeRow ? 50 + least + growth * fewer : 50}};
  };
}

// Accuracy by E: `rise` points to E = 10, then `after`; the router's falls by `drop` for each further expert.
ClaimResult experts_table(double rise, double after, double drop) {
  return [=](const Json& job) {
    const auto experts = job.at("E").get<double>();
    return Json{{"accuracy", experts < 10   ? 50 - rise
                             : experts > 10 ? 50 + after
                                            : 50},
                {"router_accuracy", experts > 10 ? 80 - drop * (experts - 10) : 80}};
  };
}

// Accuracy falls by `fall` for each layer away from 2; the router's for each layer after it.
ClaimResult layers_table(double fall) {
  return [=](const Json& job) {
    const auto layers = job.at("L").get<double>();
    return Json{{"accuracy", 50 - fall * std::abs(layers - 2)}, {"router_accuracy", 80 - fall * layers}};
  };
}

// Gain by k.
ClaimResult choices_table(double few, double many) {
  return [=](const Json& job) {
    const double gain = job.at("k") <= 2 ? few : many;
    return Json{{"accuracy", job.at("model") == kMoeRow ? 50 + gain : 50}};
  };
}

ClaimResult routing_table(double images, double random, double semantic, double tokens, double touched) {
  return [=](const Json& job) {
    const std::string routing = job.at("routing");
    return Json{{"accuracy", routing == kImages     ? images
                             : routing == kRandom   ? random
                             : routing == kSemantic ? semantic
                             : routing == kTokens   ? tokens
                                                    : 50},
                {"touched", routing == kTokens ? touched : 600}};
  };
}

ClaimResult lambda_table(double with_paper, double entropy, double router, double unused) {
  return [=](const Json& job) {
    const bool paper = job.at("lambda") == 0.3, none = job.at("lambda") == 0.0;
    return Json{{"accuracy", paper ? with_paper : 50},
                {"entropy", none ? 0.7 : entropy},
                {"router_accuracy", none ? Json() : Json(router)},
                {"busiest", 60},
                {"unused", unused}};
  };
}

}  // namespace

ClaimTables mobile_vmoe_claim_tables() {
  return {{"mobile_vmoe/sizes", {sizes_table(2, 0.3), sizes_table(-3, -0.2)}},
          {"mobile_vmoe/experts", {experts_table(2, 0.2, 1), experts_table(-2, 3, -1)}},
          {"mobile_vmoe/layers", {layers_table(1), layers_table(-1)}},
          {"mobile_vmoe/k", {choices_table(3, 1), choices_table(-2, -1)}},
          {"mobile_vmoe/routing", {routing_table(51, 52, 53, 54, 900), routing_table(49, 49, 48, 47, 500)}},
          {"mobile_vmoe/lambda", {lambda_table(51, 0.98, 97, 0), lambda_table(48, 0.5, 40, 1)}}};
}

}  // namespace sparsight::testing
