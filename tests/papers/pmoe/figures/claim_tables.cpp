#include "tests/papers/claim_tables.h"

#include <cmath>
#include <map>

#include "sparsight/papers/register_figures.h"

namespace sparsight::testing {
namespace {

using Tables = std::vector<ClaimResult>;

double real(const Json& job, const char* key) { return job.at(key).get<double>(); }
std::string job_model(const Json& job) { return job.at("model").get<std::string>(); }

// The curve of a model is that of the other one with `factor` times the samples.
Json curve(const Json& job, const char* other, double factor) {
  const double samples = real(job, "samples") * (job_model(job) == other ? 1 : factor);
  return {{"accuracy", 60 + 12 * std::log10(samples)}};
}

Json digits(const Json& job, double factor, double epochs, double cnn_epochs) {
  Json result = curve(job, "cnn", factor);
  result["epochs"] = job_model(job) == "cnn" ? cnn_epochs : epochs;
  result["zero_error"] = 100;
  return result;
}

Tables fig4_tables() {
  return {[](const Json& job) { return digits(job, 4, 20, 90); },
          [](const Json& job) { return digits(job, 0.5, 90, 20); }};
}

// A trial succeeds from `first` samples on.
Json success(const Json& job, double first) { return {{"success", real(job, "samples") >= first ? 100 : 0}}; }

Tables fig5_tables() {
  return {[](const Json& job) { return success(job, 350 + 40 * real(job, "patches")); },
          [](const Json& job) { return success(job, 910 - 40 * real(job, "patches")); },
          [](const Json& job) {
            return Json{{"success", real(job, "samples") > 600 ? 0 : 100}};
          }};
}

Tables joint_tables(const char* axis, double best, double curvature, double slope) {
  return {[=](const Json& job) {
            const double away = real(job, axis) - best;
            return Json{{"accuracy", job_model(job) == "cnn" ? 90 : 96 - curvature * away * away}};
          },
          [=](const Json& job) {
            return Json{{"accuracy", job_model(job) == "cnn" ? 99 : 99 - slope * (17 - real(job, axis))}};
          }};
}

// WRN-pMoE ahead or behind; the comparisons of figures 11, 15 and 16 likewise.
Json wide(const Json& job, double factor, double even, double plain_gap) {
  const std::string model = job_model(job);
  if (model.ends_with("even training")) return {{"accuracy", even}};
  if (model.ends_with("plain CIFAR-10")) return {{"accuracy", 50 + (model.starts_with("WRN-pMoE") ? plain_gap : 0)}};
  return curve(job, "WRN", factor);
}

Tables wide_tables() {
  return {[](const Json& job) { return wide(job, 6, 200, 0.1); },
          [](const Json& job) { return wide(job, 0.5, 1, 20); }};
}

Tables table2_tables() {
  const auto costs = [](double wrn, double pmoe) {
    return [=](const Json& job) {
      const double cost = job_model(job) == "WRN" ? wrn : pmoe;
      return Json{{"seconds", cost}, {"counted_pflop", cost}};
    };
  };
  return {costs(10, 5), costs(5, 10)};
}

// The formulas themselves, and other values in their place.
Tables formula_tables(const char* figure) {
  const auto measured = [figure](const Json& job) { return find_figure(figure).measure(job, {}); };
  const auto agreeing = [measured](const Json& job) {
    Json result = measured(job);
    if (result.contains("printed_value") && result.at("printed_value").is_number())
      result["printed_value"] = result.at("value");
    return result;
  };
  const auto disagreeing = [measured](const Json& job) {
    Json result = measured(job);
    if (result.contains("printed_value") && result.at("printed_value").is_number())
      result["printed_value"] = 2 * result.at("value").get<double>();
    const std::string text = job.dump();
    if (text.find("\"samples N\"") != std::string::npos || text.find("\"total\"") != std::string::npos)
      result["value"] = (text.find("CNN") != std::string::npos ? 7 : 3) * result.at("value").get<double>();
    if (result.contains("ratio")) result["ratio"] = 10;
    return result;
  };
  return {agreeing, disagreeing};
}

Tables constant_tables(const Json& holds, const Json& fails) {
  return {[=](const Json&) { return holds; }, [=](const Json&) { return fails; }};
}

Tables power_tables(const char* x) {
  const auto falls = [x](double power, double scaled) {
    return [=](const Json& job) { return Json{{"deviation", std::pow(real(job, x), power)}, {"scaled", scaled}}; };
  };
  return {falls(-0.5, 0.3), falls(-0.1, 2), falls(-0.45, 0.3), falls(-0.6, 0.3), falls(-0.4, 0.3), falls(-0.3, 0.3)};
}

Tables routing_tables() {
  const auto rates = [](double easy, double below, double above) {
    return [=](const Json& job) {
      const bool hard = job.at("profile") == "HARD";
      return Json{{"rate", !hard ? easy : real(job, "patches") < 6 ? below : above}, {"clear", above}};
    };
  };
  return {rates(99.9, 50, 99.9), rates(80, 90, 80)};
}

Tables descent_tables() {
  static const std::map<std::string, int> kOrder = {
      {"separate, l = 1", 1},    {"separate, l = 2", 2}, {"separate, l = 4", 3}, {"separate, l = 8", 4}, {"CNN", 5},
      {"joint, k = 8, l = 2", 6}};
  const auto steps = [](double rising, double late, double sign) {
    return [=](const Json& job) {
      return Json{{"rising", rising}, {"early", 1},    {"late", late},
                  {"v_early", 1},     {"v_late", 0.5}, {"scaled", 10 - sign * kOrder.at(job_model(job))}};
    };
  };
  return {steps(0, 0.5, 1), steps(5, 2, -1)};
}

Tables linear_tables() {
  const auto errors = [](double linear, double pmoe) {
    return [=](const Json& job) { return Json{{"training_error", job_model(job) == "linear" ? linear : pmoe}}; };
  };
  return {errors(5, 0), errors(0.1, 5)};
}

Tables sample_tables(const std::string& axis) {
  return {[axis](const Json& job) {
            return Json{{"samples", (job_model(job) == "CNN" ? 300 : 100) + real(job, axis.c_str())}};
          },
          [axis](const Json& job) {
            return Json{{"samples", (job_model(job) == "CNN" ? 300 : 500) - real(job, axis.c_str())}};
          }};
}

Tables spurious_tables() {
  const auto broken = [](double ours) {
    return [=](const Json& job) { return Json{{"broken", job_model(job) == "CNN" ? 80 : ours}}; };
  };
  return {broken(90), broken(60)};
}

// Routers of few samples are `lost` points worse, and find the cell `missed` points less often.
Tables router_samples_tables() {
  const auto few = [](double lost, double missed) {
    return [=](const Json& job) {
      const bool all = real(job, "router_samples") >= 1000;
      return Json{{"accuracy", all ? 96 : 96 - lost}, {"found", all ? 95 : 95 - missed}};
    };
  };
  return {few(0.3, 8), few(4, -2)};
}

}  // namespace

ClaimTables pmoe_claim_tables() {
  ClaimTables all = {
      {"pmoe/fig3", constant_tables({{"patches", 16}, {"paper_patches", 16}, {"width", 784}, {"paper_width", 784}},
                                    {{"patches", 9}, {"paper_patches", 16}, {"width", 49}, {"paper_width", 784}})},
      {"pmoe/fig4", fig4_tables()},
      {"pmoe/fig4-code", fig4_tables()},
      {"pmoe/fig5", fig5_tables()},
      {"pmoe/fig6", joint_tables("experts", 8, 0.02, 0.3)},
      {"pmoe/fig7", joint_tables("patches", 6, 0.3, 2)},
      {"pmoe/fig8", constant_tables({{"found", 97}}, {{"found", 80}})},
      {"pmoe/fig9", constant_tables({{"found_1", 95}, {"found_0", 92}}, {{"found_1", 60}, {"found_0", 50}})},
      {"pmoe/router_samples", router_samples_tables()},
      {"pmoe/table1", formula_tables("pmoe/table1")},
      {"pmoe/table2", table2_tables()},
      {"pmoe/bounds", formula_tables("pmoe/bounds")},
      {"pmoe/t1", power_tables("samples")},
      {"pmoe/t2", constant_tables({{"within", 100}}, {{"within", 99}})},
      {"pmoe/t3", power_tables("batch")},
      {"pmoe/t4", routing_tables()},
      {"pmoe/t6", constant_tables({{"violations", 0}, {"covered", 90}, {"predicted", 80}},
                                  {{"violations", 3}, {"covered", 50}, {"predicted", 80}})},
      {"pmoe/t7", constant_tables({{"share", 20}, {"gamma", 10}}, {{"share", 5}, {"gamma", 10}})},
      {"pmoe/t8", descent_tables()},
      {"pmoe/t9", constant_tables({{"share", 99}}, {{"share", 80}})},
      {"pmoe/t10", linear_tables()},
      {"pmoe/spurious", spurious_tables()}};
  for (const char* name : {"fig10", "fig11", "fig12", "fig14", "fig15", "fig16"})
    all[std::string("pmoe/") + name] = wide_tables();
  for (const char* axis : {"l", "n", "delta_d", "delta_r", "p", "k"})
    all[std::string("pmoe/t11_") + axis] = sample_tables(axis);
  return all;
}

}  // namespace sparsight::testing
