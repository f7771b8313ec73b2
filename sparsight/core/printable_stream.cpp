#include "sparsight/core/printable_stream.h"

namespace sparsight {

// The first `bytes` of what waits.
bool PrintableBuffer::pass_on(size_t bytes) {
  to_ << printable(std::string_view(waiting_).substr(0, bytes), "\n\t");
  waiting_.erase(0, bytes);
  return to_.good();
}

std::streamsize PrintableBuffer::xsputn(const char* text, std::streamsize bytes) {
  const std::string_view added(text, static_cast<size_t>(bytes));
  const size_t before = waiting_.size(), newline = added.rfind('\n');
  waiting_ += added;
  return newline == std::string_view::npos || pass_on(before + newline + 1) ? bytes : 0;
}

PrintableBuffer::int_type PrintableBuffer::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char byte = traits_type::to_char_type(c);
  return xsputn(&byte, 1) == 1 ? c : traits_type::eof();
}

int PrintableBuffer::sync() { return pass_on(waiting_.size()) && to_.flush() ? 0 : -1; }

}  // namespace sparsight
