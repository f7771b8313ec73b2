#include "sparsight/data/readers/cub.h"

#include <charconv>
#include <set>
#include <string_view>

#include "sparsight/core/bytes.h"
#include "sparsight/core/error.h"

namespace sparsight {
namespace {

// A file of CUB: lines of fields separated by spaces, of which the last may contain spaces.
class CubLines {
 public:
  CubLines(const std::string& root, const std::string& file) : file_(file) {
    const std::string path = root + "/" + file;
    if (!path_exists(path))
      fail(printable(root), " has no ", file,
           "; CUB-200-2011 is at https://www.vision.caltech.edu/datasets/cub_200_2011");
    const Bytes bytes = read_bytes(path, kMaxListBytes);
    text_.assign(bytes.begin(), bytes.end());
  }

  // The next line that is not empty, as `count` fields. False at the end.
  bool next(size_t count) {
    std::string_view line;
    do {
      if (at_ >= text_.size()) return false;
      const size_t end = std::min(text_.find('\n', at_), text_.size());
      line = std::string_view(text_).substr(at_, end - at_);
      if (line.ends_with('\r')) line.remove_suffix(1);
      at_ = end + 1;
      ++number_;
    } while (line.empty());
    fields_.clear();
    for (size_t i = 0; i + 1 < count; ++i) {
      const size_t space = std::min(line.find(' '), line.size());
      fields_.push_back(line.substr(0, space));
      line.remove_prefix(std::min(space + 1, line.size()));
    }
    fields_.push_back(line);
    for (const std::string_view field : fields_)
      if (field.empty()) fail(position(), ": expected ", count, " fields");
    return true;
  }

  std::string text(size_t field) const { return std::string(fields_[field]); }
  double real(size_t field) const {
    const std::string_view word = fields_[field];
    double value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || !(value >= -1e6 && value <= 1e6))
      fail(position(), ": \"", printable(word), "\" is not a number");
    return value;
  }
  // A number from 1 to `most`, minus 1.
  int64_t index(size_t field, size_t most) const {
    const double value = real(field);
    if (value < 1 || value > static_cast<double>(most) || value != static_cast<double>(static_cast<int64_t>(value)))
      fail(position(), ": ", printable(fields_[field]), " where a whole number of 1 to ", most, " must be");
    return static_cast<int64_t>(value) - 1;
  }
  // Requires the number `expected` + 1: lines are in order.
  void expect(size_t field, size_t expected) const {
    if (real(field) != static_cast<double>(expected + 1))
      fail(position(), ": ", printable(fields_[field]), " where ", expected + 1, " must follow");
  }
  // A yes or no: 1 or 0.
  bool flag(size_t field) const {
    if (fields_[field] != "0" && fields_[field] != "1")
      fail(position(), ": \"", printable(fields_[field]), "\" where 0 or 1 must be");
    return fields_[field] == "1";
  }
  std::string position() const { return cat(file_, ":", number_); }

 private:
  std::string file_, text_;
  size_t at_ = 0;
  int64_t number_ = 0;
  std::vector<std::string_view> fields_;
};

// The folder of "class/file", which must be one below the pictures.
std::string image_class(const CubLines& lines, const std::string& image) {
  const size_t slash = image.find('/');
  const bool plain = slash != std::string::npos && slash > 0 && image.find('/', slash + 1) == std::string::npos &&
                     image[0] != '.' && slash + 1 < image.size() && image[slash + 1] != '.';
  if (!plain) fail(lines.position(), ": \"", printable(image), "\" is not class/file");
  return image.substr(0, slash);
}

void check_count(const char* file, size_t got, size_t wanted) {
  if (got != wanted) fail(file, " has ", got, " lines, images.txt lists ", wanted, " images");
}

void read_labels(const std::string& root, const std::vector<std::string>& class_names, CubTable& table) {
  CubLines lines(root, "image_class_labels.txt");
  const size_t images = table.images.size();
  while (lines.next(2)) {
    const size_t i = table.labels.size();
    if (i >= images) fail(lines.position(), ": images.txt has no image ", i + 1);
    lines.expect(0, i);
    const int64_t label = lines.index(1, images);
    if (label >= static_cast<int64_t>(table.classes.size())) table.classes.resize(static_cast<size_t>(label) + 1);
    std::string& name = table.classes[static_cast<size_t>(label)];
    if (name.empty()) name = class_names[i];
    if (name != class_names[i])
      fail(lines.position(), ": class ", label + 1, " has pictures in ", printable(name), " and in ",
           printable(class_names[i]));
    table.labels.push_back(label);
  }
  check_count("image_class_labels.txt", table.labels.size(), images);
  for (size_t k = 0; k < table.classes.size(); ++k)
    if (table.classes[k].empty()) fail("image_class_labels.txt: class ", k + 1, " has no picture");
}

void read_keypoints(const std::string& root, CubTable& table) {
  CubLines names(root, "parts/parts.txt");
  std::set<std::string> known;
  while (names.next(2)) {
    names.expect(0, table.parts.size());
    const std::string part = names.text(1);
    if (part.find_first_of(",\"") != std::string::npos || part != printable(part))
      fail(names.position(), ": the part \"", printable(part), "\" has a comma, a quote or another character that no ",
           "name of a column can have");
    if (!known.insert(part).second) fail(names.position(), ": the part \"", part, "\" is there twice");
    table.parts.push_back(part);
  }
  const size_t parts = table.parts.size();
  CubLines lines(root, "parts/part_locs.txt");
  while (lines.next(5)) {
    const size_t i = table.keypoints.size();
    if (i >= table.images.size() * parts) fail(lines.position(), ": more lines than images times parts");
    lines.expect(0, i / parts);
    lines.expect(1, i % parts);
    table.keypoints.push_back({lines.real(2), lines.real(3), lines.flag(4)});
  }
  if (table.keypoints.size() != table.images.size() * parts)
    fail("parts/part_locs.txt has ", table.keypoints.size(), " lines; ", table.images.size(), " images of ", parts,
         " parts need ", table.images.size() * parts);
}

}  // namespace

CubTable read_cub(const std::string& root) {
  CubTable table;
  std::vector<std::string> class_names;
  CubLines images(root, "images.txt");
  while (images.next(2)) {
    images.expect(0, table.images.size());
    table.images.push_back(images.text(1));
    class_names.push_back(image_class(images, table.images.back()));
  }
  if (table.images.empty()) fail(printable(root), "/images.txt lists no images");
  read_labels(root, class_names, table);
  CubLines splits(root, "train_test_split.txt");
  while (splits.next(2)) {
    splits.expect(0, table.is_training.size());
    table.is_training.push_back(splits.flag(1));
  }
  check_count("train_test_split.txt", table.is_training.size(), table.images.size());
  CubLines boxes(root, "bounding_boxes.txt");
  while (boxes.next(5)) {
    boxes.expect(0, table.boxes.size());
    table.boxes.push_back({boxes.real(1), boxes.real(2), boxes.real(3), boxes.real(4)});
  }
  check_count("bounding_boxes.txt", table.boxes.size(), table.images.size());
  read_keypoints(root, table);
  return table;
}

}  // namespace sparsight
