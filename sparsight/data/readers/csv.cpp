#include "sparsight/data/readers/csv.h"

#include <algorithm>
#include <utility>

#include "sparsight/core/error.h"

namespace sparsight {

CsvReader::CsvReader(std::string_view text, std::string name) : text_(text), name_(std::move(name)) {
  if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
}

std::string CsvReader::quoted_field() {
  std::string field;
  for (++at_;; ++at_) {
    if (at_ >= text_.size()) fail(name_, ":", row_.line, ": a quote is opened but not closed");
    if (text_[at_] == '\n') ++line_;
    if (text_[at_] != '"') {
      field += text_[at_];
    } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
      field += text_[at_++];
    } else {
      break;
    }
  }
  ++at_;
  if (text_.substr(at_).starts_with("\r\n")) ++at_;
  if (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n')
    fail(name_, ":", line_, ": a closing quote must be followed by a comma or the end of the line");
  return field;
}

std::string CsvReader::plain_field() {
  const size_t end = std::min(text_.find_first_of(",\n", at_), text_.size());
  std::string field(text_.substr(at_, end - at_));
  at_ = end;
  if ((at_ == text_.size() || text_[at_] == '\n') && field.ends_with('\r')) field.pop_back();
  if (field.find('"') != std::string::npos)
    fail(name_, ":", line_, ": a quote inside a plain field; put the field in quotes and double the quote");
  return field;
}

const CsvRow* CsvReader::next() {
  while (at_ < text_.size()) {
    row_.line = line_;
    row_.fields.clear();
    bool more = true;
    while (more) {
      row_.fields.push_back(at_ < text_.size() && text_[at_] == '"' ? quoted_field() : plain_field());
      more = at_ < text_.size() && text_[at_] == ',';
      ++at_;  // the comma or the line end
    }
    ++line_;
    if (row_.fields.size() > 1 || !row_.fields[0].empty()) return &row_;
  }
  return nullptr;
}

std::vector<CsvRow> parse_csv(std::string_view text, const std::string& name) {
  CsvReader reader(text, name);
  std::vector<CsvRow> rows;
  while (const CsvRow* row = reader.next()) rows.push_back(*row);
  return rows;
}

}  // namespace sparsight
