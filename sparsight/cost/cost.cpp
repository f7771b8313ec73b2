#include "sparsight/cost/cost.h"

#include <cmath>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

constexpr int64_t kWeightBytes = 4;  // fp32

[[noreturn]] void too_large() {
  fail("the cost of this model does not fit 64 bits; make its images, layers or experts smaller or fewer");
}

int64_t sum(int64_t a, int64_t b) {
  int64_t out = 0;
  if (__builtin_add_overflow(a, b, &out)) too_large();
  return out;
}

// a * times, rounded.
int64_t scaled(int64_t a, double times) {
  const double whole = std::floor(times);
  if (whole > 9e18) too_large();
  const double rest = static_cast<double>(a) * (times - whole);
  return sum(checked_product(a, static_cast<int64_t>(whole)), std::llround(rest));
}

}  // namespace

int64_t checked_product(int64_t a, int64_t b) {
  int64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) too_large();
  return out;
}

Cost operator+(const Cost& a, const Cost& b) {
  return {sum(a.multiply_adds, b.multiply_adds), sum(a.elementwise, b.elementwise),
          sum(a.parameters, b.parameters),       sum(a.active_parameters, b.active_parameters),
          sum(a.weight_bytes, b.weight_bytes),   a.assumed || b.assumed};
}

Cost on_units(const Cost& cost, int64_t times) {
  Cost out = cost;
  out.multiply_adds = checked_product(cost.multiply_adds, times);
  out.elementwise = checked_product(cost.elementwise, times);
  return out;
}

Cost on_average(const Cost& cost, double times) {
  Cost out = cost;
  out.multiply_adds = scaled(cost.multiply_adds, times);
  out.elementwise = scaled(cost.elementwise, times);
  return out;
}

Cost copies(const Cost& cost, int64_t count) {
  Cost out = on_units(cost, count);
  out.parameters = checked_product(cost.parameters, count);
  out.active_parameters = checked_product(cost.active_parameters, count);
  out.weight_bytes = checked_product(cost.weight_bytes, count);
  return out;
}

Cost parameters_cost(int64_t count) {
  return {.parameters = count, .active_parameters = count, .weight_bytes = checked_product(kWeightBytes, count)};
}

Cost elementwise_cost(int64_t operations) { return {.elementwise = operations}; }

}  // namespace sparsight
