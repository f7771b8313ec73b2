#include "sparsight/engine/file/fields.h"

namespace sparsight::engine {

void Fields::expert_floats(const char* name, std::vector<float>& values, int64_t experts,
                           const std::vector<int64_t>& shape, bool required) {
  bool present = required || !values.empty();
  if (!required) flag((std::string("has_") + name).c_str(), present);
  if (!present) return;
  const auto each = static_cast<int64_t>(values.size()) / experts;
  std::vector<float> all;
  for (int64_t e = 0; e < experts; ++e) {
    std::vector<float> one;
    if (!reads()) one.assign(values.begin() + e * each, values.begin() + (e + 1) * each);
    expert(e, [&] { floats(name, one, shape); });
    if (reads()) all.insert(all.end(), one.begin(), one.end());
  }
  if (reads()) values = std::move(all);
}

}  // namespace sparsight::engine
