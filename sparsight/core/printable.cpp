#include "sparsight/core/printable.h"

#include <map>

namespace sparsight {
namespace {

// Length of the UTF-8 character at the start of `text`, 0 where there is none (RFC 3629: no overlong forms, no
// surrogates).
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xC2 && first < 0xE0   ? 2
                        : first >= 0xE0 && first < 0xF0 ? 3
                        : first >= 0xF0 && first < 0xF5 ? 4
                                                        : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F)) return 0;
  if ((first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) return 0;
  return length;
}

// `name` with \xNN for bytes that are not UTF-8 and for control characters, but those of `kept`, and for `escaped`.
std::string escape(std::string_view name, std::string_view kept, std::string_view escaped) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  while (!name.empty()) {
    const auto first = static_cast<unsigned char>(name[0]);
    const bool control = (first < 0x20 || first == 0x7f) && kept.find(name[0]) == std::string_view::npos;
    size_t length = control || escaped.find(name[0]) != std::string_view::npos ? 0 : utf8_length(name);
    if (length == 0) {
      text += {'\\', 'x', kDigits[first >> 4], kDigits[first & 15]};
      length = 1;
    } else {
      text += name.substr(0, length);
    }
    name.remove_prefix(length);
  }
  return text;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string printable(std::string_view name) { return escape(name, "", ""); }

std::string printable_lines(std::string_view text) { return escape(text, "\n\t", ""); }

std::vector<std::string> printable_names(const std::vector<std::string>& names) {
  std::vector<std::string> text;
  for (const std::string& name : names) text.push_back(printable(name));
  std::map<std::string, const std::string*> name_of;
  for (size_t i = 0; i < names.size(); ++i)
    if (const auto [other, fresh] = name_of.emplace(text[i], &names[i]); !fresh && *other->second != names[i]) {
      for (size_t j = 0; j < names.size(); ++j) text[j] = escape(names[j], "", "\\");
      break;
    }
  return text;
}

}  // namespace sparsight
