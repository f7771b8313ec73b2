#include "tests/papers/claim_tables.h"

#include <cmath>

namespace sparsight::testing {
namespace {

std::vector<ClaimResult> pooling_tables() {
  const auto errors = [](double max, double mean, double helped) {
    return [=](const Json& job) {
      const bool aligned = job.at("pooling") == "maximum", plain = job.at("independent") == 0.0;
      return Json{{"in_distribution", max}, {"shifted", aligned ? max : plain ? mean : helped}};
    };
  };
  return {errors(0.01, 0.4, 0.2), errors(0.03, 0.2, 0.3)};
}

std::vector<ClaimResult> branch_tables() {
  const auto errors = [](double few, double best) {
    return [=](const Json& job) {
      const auto experts = job.at("experts").get<int64_t>();
      return Json{{"in_distribution", 0.1}, {"shifted", experts == 1 || experts == 16 ? few : best}};
    };
  };
  return {errors(0.4, 0.2), errors(0.2, 0.4)};
}

std::vector<ClaimResult> complexity_tables() {
  const auto law = [](double factor, double power, double fall) {
    return [=](const Json& job) {
      return Json{{"samples", factor * std::pow(job.at("width").get<double>(), power)}, {"fall", fall}};
    };
  };
  return {law(9, 1, 2), law(20, 0.2, 30)};
}

}  // namespace

ClaimTables gmoe_theory_claim_tables() {
  return {{"gmoe/t1", pooling_tables()},
          {"gmoe/t2", branch_tables()},
          {"gmoe/t3",
           {[](const Json&) {
              return Json{{"alignment", 9}, {"above", 0}, {"before", -1}, {"after", 1}};
            },
            [](const Json&) {
              return Json{{"alignment", 9}, {"above", -1}, {"before", 2}, {"after", -1}};
            }}},
          {"gmoe/t4", complexity_tables()}};
}

}  // namespace sparsight::testing
