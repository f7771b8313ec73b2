#include "sparsight/data/readers/celeba.h"

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

// The words of a text, line by line; empty lines are skipped.
class Lines {
 public:
  Lines(std::string_view text, std::string name) : text_(text), name_(std::move(name)) {}

  // False at the end.
  bool next(std::vector<std::string_view>& words) {
    while (!text_.empty()) {
      const size_t end = text_.find('\n');
      std::string_view line = text_.substr(0, end);
      text_ = end == std::string_view::npos ? std::string_view() : text_.substr(end + 1);
      ++number_;
      words.clear();
      constexpr std::string_view kBlank = " \t\r";
      for (size_t at; (at = line.find_first_not_of(kBlank)) != std::string_view::npos;) {
        line = line.substr(at);
        const size_t length = std::min(line.size(), line.find_first_of(kBlank));
        words.push_back(line.substr(0, length));
        line = line.substr(length);
      }
      if (!words.empty()) return true;
    }
    return false;
  }

  std::string position() const { return cat(name_, ":", number_); }

 private:
  std::string_view text_;
  std::string name_;
  int64_t number_ = 0;
};

// Accepts the name of a file in the images' folder only, not a path to elsewhere.
std::string checked_name(std::string_view word, const Lines& lines) {
  if (word.find('/') != std::string_view::npos || word == ".." || word == ".")
    fail(lines.position(), ": \"", printable(word), "\" is not the name of an image");
  return std::string(word);
}

}  // namespace

size_t CelebaTable::attribute(const std::string& name) const {
  const auto found = std::find(attributes.begin(), attributes.end(), name);
  if (found == attributes.end())
    fail("CelebA's list of attributes has no \"", printable(name), "\"", suggestion(name, attributes));
  return static_cast<size_t>(found - attributes.begin());
}

CelebaTable parse_celeba(std::string_view attributes, const std::string& attributes_name, std::string_view partition,
                         const std::string& partition_name) {
  CelebaTable table;
  Lines lines(attributes, attributes_name);
  std::vector<std::string_view> words;
  if (!lines.next(words) || words.size() != 1 || words[0].find_first_not_of("0123456789") != std::string_view::npos)
    fail(attributes_name, ": the first line must be the number of images, and nothing else");
  const std::string count(words[0]);
  if (!lines.next(words)) fail(attributes_name, " ends before the names of the attributes");
  table.attributes.assign(words.begin(), words.end());
  while (lines.next(words)) {
    if (words.size() != table.attributes.size() + 1)
      fail(lines.position(), ": expected the name of an image and ", table.attributes.size(), " values, got ",
           words.size() - 1, " values");
    table.images.push_back(checked_name(words[0], lines));
    for (size_t i = 1; i < words.size(); ++i) {
      if (words[i] != "1" && words[i] != "-1")
        fail(lines.position(), ": values must be 1 or -1, got \"", printable(words[i]), "\"");
      table.has.push_back(words[i] == "1");
    }
  }
  if (std::to_string(table.images.size()) != count)
    fail(attributes_name, " says that it lists ", printable(count), " images, but has ", table.images.size());

  Lines parts(partition, partition_name);
  while (parts.next(words)) {
    if (words.size() != 2 || (words[1] != "0" && words[1] != "1" && words[1] != "2"))
      fail(parts.position(), ": expected the name of an image and 0, 1 or 2");
    const size_t i = table.part.size();
    if (i >= table.images.size() || words[0] != table.images[i])
      fail(parts.position(), ": \"", printable(words[0]), "\" where ", attributes_name, " has ",
           i < table.images.size() ? cat("\"", printable(table.images[i]), "\"") : std::string("no more images"),
           "; the files do not match");
    table.part.push_back(static_cast<int8_t>(words[1][0] - '0'));
  }
  if (table.part.size() != table.images.size())
    fail(partition_name, " has ", table.part.size(), " images, ", attributes_name, " has ", table.images.size());
  return table;
}

}  // namespace sparsight
