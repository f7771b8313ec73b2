#include "sparsight/serve/base64.h"

#include <array>

namespace sparsight::serve {
namespace {

constexpr uint32_t kNoDigit = 64;

constexpr std::array<uint8_t, 256> base64_digits() {
  std::array<uint8_t, 256> digits{};
  digits.fill(kNoDigit);
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < alphabet.size(); ++i) digits[static_cast<uint8_t>(alphabet[i])] = static_cast<uint8_t>(i);
  return digits;
}

}  // namespace

std::optional<Bytes> decode_base64(std::string_view text) {
  static constexpr std::array<uint8_t, 256> digits = base64_digits();
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  Bytes bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t at = 0; at < text.size(); at += 4) {
    const bool last = at + 4 == text.size();
    const size_t given = last ? 4 - padding : 4;
    uint32_t group = 0;
    for (size_t i = 0; i < 4; ++i) {
      const uint32_t digit = i < given ? digits[static_cast<uint8_t>(text[at + i])] : 0;
      if (digit == kNoDigit) return std::nullopt;
      group = group << 6 | digit;
    }
    for (size_t i = 0; i + 1 < given; ++i) bytes.push_back(static_cast<uint8_t>(group >> (16 - 8 * i)));
  }
  return bytes;
}

}  // namespace sparsight::serve
