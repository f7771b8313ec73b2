#include "tests/papers/claim_tables.h"

#include <algorithm>

namespace sparsight::testing {
namespace {

bool mentions(const Json& value, const char* word) { return value.get<std::string>().find(word) != std::string::npos; }

Json number_of_errors(double error, double other, const char* key) {
  return {{"robust_error", error}, {key, other}, {"images", 1000}};
}

// Curves of figures 1 and 4a. `key`: the error under the weaker attack.
std::vector<ClaimResult> error_tables(const char* key) {
  const auto as_claimed = [key](const Json& job) {
    const double epsilon = job.at("epsilon");
    const double better = mentions(job.at("model"), "MoE") ? 5 : 0;
    const bool adversarial = mentions(job.at("model"), "adversarial");
    const double error = adversarial ? 40 + 0.05 * epsilon : std::min(90.0, 30 + 2 * epsilon);
    const double shown = !adversarial && epsilon >= 64 ? 100 : error - better;
    return number_of_errors(shown, shown - 5, key);
  };
  const auto reversed = [key](const Json& job) {
    const double epsilon = job.at("epsilon");
    const double worse = mentions(job.at("model"), "MoE") ? 15 : 0;
    const bool adversarial = mentions(job.at("model"), "adversarial");
    const double error = (adversarial ? (epsilon == 0 ? 40 : 70) : 60 - 0.5 * epsilon) + worse;
    return number_of_errors(error, error + 20, key);
  };
  return {as_claimed, reversed};
}

std::vector<ClaimResult> attack_routing_tables() {
  const auto changes = [](double at_zero, double standard, double adversarial, double above, double random) {
    return [=](const Json& job) {
      const bool moved = job.at("epsilon").get<double>() > 0;
      const double change = mentions(job.at("layer"), "adversarial") ? adversarial : standard;
      return Json{{"change", moved ? change : at_zero},
                  {"above_pgd", moved ? above : 0},
                  {"redundancy", .7},
                  {"redundancy_random", random}};
    };
  };
  return {changes(0, .2, .1, .05, 1), changes(.5, .1, .2, -.05, .5)};
}

std::vector<ClaimResult> auxiliary_tables() {
  const auto apart = [](double difference) {
    return [=](const Json& job) {
      Json result = {{"robust_error", 50}, {"images", 1000}, {"plain_error", nullptr}};
      if (job.at("attacked") == "+ importance") result["plain_error"] = 50 - difference;
      return result;
    };
  };
  return {apart(0.5), apart(20)};
}

std::vector<ClaimResult> expert_number_tables() {
  const auto with = [](double share, double sign, double change) {
    return [=](const Json& job) {
      const double experts = job.at("experts").get<double>();
      return Json{{"robust_error", 50 - sign * experts / 2},
                  {"gflop_share", share},
                  {"parameters", sign * experts},
                  {"change", experts == 2 ? change : .3}};
    };
  };
  return {with(101, 1, 0), with(110, -1, .1)};
}

std::vector<ClaimResult> error_cost_tables() {
  const auto with = [](double ratio) {
    return [=](const Json& job) { return Json{{"cost_ratio", job.at("model") == "MoE" ? ratio : 1.4}}; };
  };
  return {with(1.42), with(2)};
}

std::vector<ClaimResult> sweep_tables() {
  const auto with = [](double error) {
    return [=](const Json&) { return Json{{"robust_error", error}, {"clean_error", 50}, {"images", 1000}}; };
  };
  return {with(60), with(20)};
}

std::vector<ClaimResult> transfer_tables() {
  const auto with = [](double own, double raised, double dense) {
    return [=](const Json& job) {
      const bool itself = job.at("source") == job.at("target");
      const bool mixture = mentions(job.at("source"), "MoE") || mentions(job.at("target"), "MoE");
      Json result = {{"robust_error", 50}, {"images", 1000}, {"success", mixture ? 30 : dense}};
      if (!itself) result["own_error"] = own, result["raised"] = raised;
      return result;
    };
  };
  return {with(80, 20, 40), with(20, -5, 20)};
}

std::vector<ClaimResult> batch_damage_tables() {
  const auto with = [](double unlimited, double lost, double by_drops, double by_class) {
    return [=](const Json& job) {
      const bool drops = mentions(job.at("attack"), "dropped");
      const bool limited = job.at("capacity").get<double>() > 0;
      return Json{{"changed", !limited ? unlimited : drops ? by_drops : by_class}, {"lost", lost}};
    };
  };
  return {with(0, 80, 5, 2), with(1, 20, 0.5, 3)};
}

std::vector<ClaimResult> part_tables() {
  const auto with = [](double whole) {
    return [=](const Json&) { return Json{{"robust_error", 50}, {"whole_error", whole}, {"images", 1000}}; };
  };
  return {with(60), with(20)};
}

std::vector<ClaimResult> generated_tables() {
  const auto result = [](double error, double change, double importance) {
    return Json{{"robust_error", error},
                {"importance_error", importance},
                {"images", 1000},
                {"change_0", change},
                {"change_1", change}};
  };
  const auto as_claimed = [=](const Json& job) {
    const double epsilon = job.at("epsilon");
    const int64_t experts = job.at("experts");
    const bool adversarial = job.at("adversarial");
    const double better = (experts == 8 ? 5 : 0) + (adversarial ? 8 : 0);
    const double error = epsilon >= 32 ? 100 : 20 + 2 * epsilon - better;
    return result(error, experts == 2 ? 0 : adversarial ? .05 : .1, error);
  };
  const auto reversed = [=](const Json& job) {
    const int64_t experts = job.at("experts");
    const bool adversarial = job.at("adversarial");
    const double error = 60 - job.at("epsilon").get<double>() + (experts == 8 ? 5 : 0) + (adversarial ? 8 : 0);
    return result(error, adversarial ? .2 : .1, error - 30);
  };
  return {as_claimed, reversed};
}

}  // namespace

ClaimTables robust_moe_attack_claim_tables() {
  ClaimTables tables = {{"robust_moe/smoke", generated_tables()}};
  for (const std::string data : {"", "_cifar10", "_mnist"}) {
    tables["robust_moe/f1" + data] = error_tables("published_error");
    tables["robust_moe/f2" + data] = attack_routing_tables();
    tables["robust_moe/f3_aux" + data] = auxiliary_tables();
    tables["robust_moe/f3_experts" + data] = expert_number_tables();
    tables["robust_moe/f4a" + data] = error_tables("pgd_error");
    tables["robust_moe/f4b" + data] = attack_routing_tables();
    tables["robust_moe/cost" + data] = error_cost_tables();
    tables["robust_moe/sweep" + data] = sweep_tables();
    tables["robust_moe/transfer" + data] = transfer_tables();
    tables["robust_moe/parts" + data] = part_tables();
    tables["robust_moe/damage" + data] = batch_damage_tables();
  }
  return tables;
}

}  // namespace sparsight::testing
