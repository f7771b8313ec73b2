#include "sparsight/report/escape_names.h"

#include <cctype>
#include <string_view>

#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// Within a word an underscore has no meaning.
bool is_within_word(const std::string& text, size_t at) {
  return at > 0 && at + 1 < text.size() && is_word(text[at - 1]) && is_word(text[at + 1]);
}

std::string latex_character(char c) {
  switch (c) {
    case '\\':
      return "\\textbackslash{}";
    case '^':
      return "\\textasciicircum{}";
    case '~':
      return "\\textasciitilde{}";
    case '<':
      return "\\textless{}";
    case '>':
      return "\\textgreater{}";
    case '|':
      return "\\textbar{}";
    case '"':
      return "\\textquotedbl{}";
    default:
      return std::string_view("{}#$%&_").find(c) == std::string_view::npos ? std::string(1, c) : std::string("\\") + c;
  }
}

}  // namespace

std::string plain_text(const std::string& text) { return printable(text); }

std::string markdown_text(const std::string& text) {
  const std::string line = printable(text);
  std::string escaped;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool has_meaning = std::string_view("\\`*_[]<|~&#$!").find(line[i]) != std::string_view::npos;
    if (has_meaning && !(line[i] == '_' && is_within_word(line, i))) escaped += '\\';
    escaped += line[i];
  }
  return escaped;
}

std::string latex_text(const std::string& text) {
  const std::string line = printable(text);
  std::string escaped;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line.compare(i, 3, "+/-") == 0)
      escaped += "$\\pm$", i += 2;
    else
      escaped += latex_character(line[i]);
  }
  return escaped;
}

}  // namespace sparsight
