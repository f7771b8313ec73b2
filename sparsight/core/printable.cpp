#include "sparsight/core/printable.h"

#include <map>
#include "sparsight/core/printable_stream.h"

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

// The character at the start of `text`, of utf8_length() bytes.
char32_t character(std::string_view text, size_t length) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  char32_t value = length == 1 ? byte(0) : byte(0) & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; ++i) value = value << 6 | (byte(i) & 0x3F);
  return value;
}

// Whether a character beyond the ASCII control characters steers the terminal, reorders or breaks the line, or is
// invisible. The joiners U+200C and U+200D are not among them: Persian, Indic scripts and emoji are spelled with them.
bool is_hidden(char32_t c) {
  return (c >= 0x7F && c <= 0x9F) ||      // DEL and the C1 control characters
         c == 0x061C || c == 0x200B ||    // Arabic letter mark, zero-width space
         c == 0x200E || c == 0x200F ||    // left-to-right and right-to-left marks
         (c >= 0x2028 && c <= 0x202E) ||  // line and paragraph separators, bidirectional embeddings and overrides
         (c >= 0x2060 && c <= 0x206F) ||  // word joiner, invisible operators, bidirectional isolates
         c == 0xFEFF || (c >= 0xFFF9 && c <= 0xFFFB);  // byte order mark, annotations
}

// `name` with escapes for bytes that are not UTF-8, for hidden characters, for control characters other than those of
// `kept`, and for `escaped`.
std::string escape(std::string_view name, std::string_view kept, std::string_view escaped) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  while (!name.empty()) {
    const auto first = static_cast<unsigned char>(name[0]);
    const size_t length = escaped.find(name[0]) != std::string_view::npos ? 0 : utf8_length(name);
    const char32_t c = length == 0 ? first : character(name, length);
    if (length == 0 || (first < 0x20 && kept.find(name[0]) == std::string_view::npos)) {
      text += {'\\', 'x', kDigits[first >> 4], kDigits[first & 15]};
    } else if (is_hidden(c)) {
      text += {'\\', 'u', kDigits[c >> 12], kDigits[c >> 8 & 15], kDigits[c >> 4 & 15], kDigits[c & 15]};
    } else {
      text += name.substr(0, length);
    }
    name.remove_prefix(length == 0 ? 1 : length);
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

std::string printable(std::string_view name, std::string_view kept) { return escape(name, kept, ""); }

std::vector<std::string> printable_names(const std::vector<std::string>& names) {
  std::vector<std::string> text;
  for (const std::string& name : names) text.push_back(printable(name));
  std::map<std::string, const std::string*> text_to_name;
  for (size_t i = 0; i < names.size(); ++i)
    if (const auto [other, fresh] = text_to_name.emplace(text[i], &names[i]); !fresh && *other->second != names[i]) {
      for (size_t j = 0; j < names.size(); ++j) text[j] = escape(names[j], "", "\\");
      break;
    }
  return text;
}

}  // namespace sparsight
