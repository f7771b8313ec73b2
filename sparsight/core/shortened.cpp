#include "sparsight/core/shortened.h"

namespace sparsight {

std::string shortened(const std::string& text, size_t limit) {
  if (text.size() <= limit) return text;
  constexpr size_t kMark = 40;  // about the length of what stands for the middle
  const size_t kept = limit - kMark;
  const auto is_inside = [&](size_t i) { return (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80; };
  size_t end = kept * 2 / 3, begin = text.size() - kept / 3;
  while (end > 0 && is_inside(end)) --end;
  while (begin < text.size() && is_inside(begin)) ++begin;
  return text.substr(0, end) + "... (" + std::to_string(begin - end) + " bytes left out) ..." + text.substr(begin);
}

}  // namespace sparsight
