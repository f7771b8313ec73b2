#include "sparsight/core/printable.h"

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

}  // namespace

std::string printable(std::string_view name) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  while (!name.empty()) {
    const auto first = static_cast<unsigned char>(name[0]);
    size_t length = first < 0x20 || first == 0x7f ? 0 : utf8_length(name);
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

}  // namespace sparsight
