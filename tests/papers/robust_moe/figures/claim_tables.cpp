#include "tests/papers/claim_tables.h"

#include <cmath>

namespace sparsight::testing {
namespace {

std::vector<ClaimResult> same_everywhere(const Json& holds, const Json& fails) {
  return {[=](const Json&) { return holds; }, [=](const Json&) { return fails; }};
}

// Rows with one value of an axis have other results than the rest.
ClaimResult by_row(const char* axis, const char* value, const Json& there, const Json& elsewhere) {
  return [=](const Json& job) { return job.at(axis) == value ? there : elsewhere; };
}

// The printed and the corrected claim about orthogonal inputs can hold together only where both norms are equal.
std::vector<ClaimResult> two_expert_tables() {
  const auto constant = [](double norm, double root, double largest, double smallest) {
    return [=](const Json&) {
      return Json{{"norm", norm}, {"root", root}, {"above_largest", largest}, {"above_smallest", smallest}};
    };
  };
  return {constant(0, 0, 0, -1), constant(5, 4, 1, 1), constant(5, 4, -1, 1)};
}

std::vector<ClaimResult> tilt_tables() {
  const char* eigenvectors = "theorem 1, eigenvectors";
  return {by_row("bound", eigenvectors, {{"value", 2}, {"left", 2}, {"share", 0}, {"gain", 0}},
                 {{"value", 2}, {"left", 2}, {"share", 100}}),
          by_row("bound", eigenvectors, {{"value", 1}, {"left", 2}, {"share", 101}, {"gain", -1}},
                 {{"value", 1}, {"left", 2}, {"share", 0}})};
}

std::vector<ClaimResult> random_tables() {
  const auto falling = [](double violated, double identity, double sign) {
    return [=](const Json& job) {
      const double informative = 50 - sign * 10 * std::log10(job.at("tilt").get<double>());
      return Json{
          {"violated", violated}, {"violated_printed", violated}, {"identity", identity}, {"informative", informative}};
    };
  };
  return {falling(0, 1e-12, 1), falling(3, 1e-3, -1)};
}

std::vector<ClaimResult> root_of_samples_tables() {
  const auto power = [](double exponent, double relative) {
    return [=](const Json& job) {
      return Json{{"norm", std::pow(job.at("samples").get<double>(), exponent)}, {"relative", relative}};
    };
  };
  return {power(0.6, 100), power(0.2, 82)};
}

std::vector<ClaimResult> root_of_experts_tables() {
  return {by_row("routing", "by block", {{"rms", .5}, {"root", .5}, {"unbalanced", 1}}, {{"rms", .7}}),
          by_row("routing", "by block", {{"rms", .6}, {"root", .5}, {"unbalanced", 1.1}}, {{"rms", .4}})};
}

}  // namespace

ClaimTables robust_moe_theory_claim_tables() {
  return {{"robust_moe/t1",
           same_everywhere({{"violations", 0}, {"difference", 1e-10}}, {{"violations", 4}, {"difference", .1}})},
          {"robust_moe/t2", same_everywhere({{"norm", 1}, {"closed", 1}, {"quarter", 1}, {"share", .5}},
                                            {{"norm", 2}, {"closed", 1}, {"quarter", 1}, {"share", 50}})},
          {"robust_moe/t3", same_everywhere({{"router", 0}, {"radius of x", 0}}, {{"router", 1}, {"radius of x", 2}})},
          {"robust_moe/t4",
           same_everywhere({{"jump", 2}, {"slope", 3}, {"closed", 3}, {"at_zero", 10}, {"temperature_of", 10}},
                           {{"jump", 1}, {"slope", 3}, {"closed", 4}, {"at_zero", 9}, {"temperature_of", 10}})},
          {"robust_moe/t5", two_expert_tables()},
          {"robust_moe/t6", tilt_tables()},
          {"robust_moe/t7", random_tables()},
          {"robust_moe/t8", same_everywhere({{"excess", 0}}, {{"excess", .1}})},
          {"robust_moe/t9", same_everywhere({{"epsilon_1", 0}, {"ratio", .5}, {"root", .5}},
                                            {{"epsilon_1", 1}, {"ratio", .6}, {"root", .5}})},
          {"robust_moe/t10", root_of_samples_tables()},
          {"robust_moe/t11", root_of_experts_tables()},
          {"robust_moe/t12", same_everywhere({{"largest", .9}}, {{"largest", 1.1}})}};
}

}  // namespace sparsight::testing
