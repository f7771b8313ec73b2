#include "sparsight/report/class_information_text.h"

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/report/format.h"

namespace sparsight {

std::string class_information_text(const Json& layer) {
  const Json& information = member(layer, "class_information");
  const auto bits = number(information, "bits");
  if (!bits) return "";
  const auto shown = [&](const char* key, int decimals) {
    return fixed(number(information, key).value_or(0), decimals);
  };
  return cat(fixed(*bits, 3), " bits (shuffled classes: ", shown("shuffled", 3), " +- ", shown("shuffled_deviation", 3),
             ", at most ", shown("maximum", 2), ")");
}

}  // namespace sparsight
