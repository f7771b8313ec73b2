// An output stream to a terminal: whatever is written to it, only text that is safe to print comes out.
#pragma once

#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace sparsight {

// Escapes as printable(name) of core/printable.h does, except for the control characters in `kept`.
std::string printable(std::string_view name, std::string_view kept);

// Passes text on to another stream line by line, escaped by printable(); newlines and tabs stay.
class PrintableBuffer : public std::streambuf {
 public:
  explicit PrintableBuffer(std::ostream& to) : to_(to) {}
  ~PrintableBuffer() override { pass_on(waiting_.size()); }

 protected:
  std::streamsize xsputn(const char* text, std::streamsize bytes) override;
  int_type overflow(int_type c) override;
  int sync() override;

 private:
  bool pass_on(size_t bytes);

  std::ostream& to_;
  std::string waiting_;  // the beginning of a line
};

class PrintableStream : public std::ostream {
 public:
  explicit PrintableStream(std::ostream& to) : std::ostream(nullptr), buffer_(to) { rdbuf(&buffer_); }

 private:
  PrintableBuffer buffer_;
};

}  // namespace sparsight
