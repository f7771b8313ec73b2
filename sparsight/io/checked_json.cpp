#include "sparsight/io/checked_json.h"

#include <nlohmann/json.hpp>

#include "sparsight/core/checksum.h"
#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr const char* kNoObject = "is not a JSON object";
constexpr const char* kMismatch = "does not match its checksum";

// A member `, "name": "0123456789abcdef"` at the end of an object.
struct LastMember {
  std::string_view before;  // the comma
  std::string_view name, digits;
};

// Takes characters from the end of a text.
class Backwards {
 public:
  explicit Backwards(std::string_view text) : rest_(text) {}
  std::string_view rest() const { return rest_; }
  bool take(char c) {
    const size_t last = rest_.find_last_not_of(kSpace);
    if (last == std::string_view::npos || rest_[last] != c) return false;
    rest_ = rest_.substr(0, last);
    return true;
  }
  // The text between two quotes.
  std::optional<std::string_view> take_string() {
    if (!take('"')) return std::nullopt;
    const size_t quote = rest_.rfind('"');
    if (quote == std::string_view::npos) return std::nullopt;
    const std::string_view text = rest_.substr(quote + 1);
    rest_ = rest_.substr(0, quote);
    return text;
  }

 private:
  std::string_view rest_;
};

std::optional<LastMember> last_member(std::string_view text) {
  Backwards end(text);
  if (!end.take('}')) return std::nullopt;
  const auto digits = end.take_string();
  if (!digits || digits->size() != kChecksumDigits || !end.take(':')) return std::nullopt;
  const auto name = end.take_string();
  if (!name || !end.take(',')) return std::nullopt;
  return LastMember{end.rest(), *name, *digits};
}

// Whether the text of `object` is undamaged; then its checksum is removed from it.
bool take_checksum(std::string_view text, Json& object) {
  const std::optional<LastMember> last = last_member(text);
  const bool is_named = last && last->name == kChecksumMember;
  if (last && (compute_checksum(last->before) == last->digits) != is_named)
    return false;  // also where the name is damaged
  if (is_named) return object.erase(kChecksumMember) == 1;
  return !object.contains(kChecksumMember);  // not last: a program has rewritten the text
}

}  // namespace

std::string checked_json(const Json& object, int indent) {
  SPARSIGHT_CHECK(object.is_object() && !object.empty() && !object.contains(kChecksumMember));
  std::string text = json_text(object, indent);
  const std::string end = indent < 0 ? "}" : "\n}";
  SPARSIGHT_CHECK(text.ends_with(end));
  text.resize(text.size() - end.size());
  const std::string digits = compute_checksum(text);
  text += indent < 0 ? "," : ",\n" + std::string(static_cast<size_t>(indent), ' ');
  return cat(text, "\"", kChecksumMember, indent < 0 ? "\":\"" : "\": \"", digits, "\"", end);
}

std::string checked_json_file(const Json& object) { return checked_json(object, 2) + "\n"; }
std::string checked_json_line(const Json& object) { return checked_json(object) + "\n"; }

Json parse_checked_object(std::string_view text, const std::string& what, const JsonLimits& limits) {
  Json object = parse_json_object(text, what, limits);
  if (!take_checksum(text, object)) fail(printable(what), " ", kMismatch);
  return object;
}

std::optional<Json> try_parse_checked_object(std::string_view text, std::string& problem, const JsonLimits& limits) {
  std::optional<Json> object = try_parse_json_object(text, limits);
  const bool is_whole = object && take_checksum(text, *object);
  if (is_whole) return object;
  problem = object ? kMismatch : kNoObject;
  return std::nullopt;
}

}  // namespace sparsight
