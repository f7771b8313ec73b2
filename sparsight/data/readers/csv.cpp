#include "sparsight/data/readers/csv.h"

#include "sparsight/core/error.h"

namespace sparsight {

std::vector<CsvRow> parse_csv(std::string_view text, const std::string& name) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::vector<CsvRow> rows;
  int64_t line = 1;
  size_t at = 0;
  while (at < text.size()) {
    CsvRow row{line, {}};
    bool more = true;
    while (more) {
      std::string field;
      if (at < text.size() && text[at] == '"') {
        for (++at;; ++at) {
          if (at >= text.size()) fail(name, ":", row.line, ": a quote is opened but not closed");
          if (text[at] == '\n') ++line;
          if (text[at] != '"') {
            field += text[at];
          } else if (at + 1 < text.size() && text[at + 1] == '"') {
            field += text[at++];
          } else {
            break;
          }
        }
        ++at;
        if (text.substr(at).starts_with("\r\n")) ++at;
        if (at < text.size() && text[at] != ',' && text[at] != '\n')
          fail(name, ":", line, ": a closing quote must be followed by a comma or the end of the line");
      } else {
        const size_t end = std::min(text.find_first_of(",\n", at), text.size());
        field = text.substr(at, end - at);
        at = end;
        if ((at == text.size() || text[at] == '\n') && field.ends_with('\r')) field.pop_back();
        if (field.find('"') != std::string::npos)
          fail(name, ":", line, ": a quote inside a plain field; put the field in quotes and double the quote");
      }
      row.fields.push_back(std::move(field));
      more = at < text.size() && text[at] == ',';
      ++at;  // the comma or the line end
    }
    ++line;
    if (row.fields.size() > 1 || !row.fields[0].empty()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace sparsight
