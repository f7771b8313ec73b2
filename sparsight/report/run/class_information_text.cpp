#include "sparsight/report/run/class_information_text.h"

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/report/format.h"

namespace sparsight {

std::string information_text(const Json& information, const std::string& of) {
  const auto bits = number(information, "bits");
  if (!bits) return "";
  const auto shown = [&](const char* key, int decimals) {
    return fixed(number(information, key).value_or(0), decimals);
  };
  return cat(fixed(*bits, 3), " bits (shuffled ", of, ": ", shown("shuffled", 3), " +- ",
             shown("shuffled_deviation", 3), ", at most ", shown("maximum", 2), ")");
}

std::string class_information_text(const Json& layer) {
  return information_text(member(layer, "class_information"), "classes");
}

}  // namespace sparsight
