// The image files that a command line names.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace sparsight {

// Each argument is an image file (with any extension; errors appear when it is read), a folder, which means the .jpg,
// .jpeg and .png files in it and its subfolders in order of name, or "-", which means the lines of `input`. One warning
// counts other visible files in the folders. Raises Error for a folder without images or that cannot be listed, and if
// there are no files at all.
std::vector<std::string> image_list(const std::vector<std::string>& arguments, std::istream& input);

// The same images one by one. The lines of "-" are read as they come, not before they are needed.
class ImageNames {
 public:
  // input: the file that "-" stands for. Raises Error as image_list does; where only "-" is given, next() does.
  ImageNames(const std::vector<std::string>& arguments, int input);

  // The next name, nothing at the end. Where the next line has not been written yet it waits, or, without `wait`,
  // returns nothing as well. Stops waiting at Ctrl-C.
  std::optional<std::string> next(bool wait);
  // 0 if unknown: "-" is among the arguments.
  int64_t total() const;
  // Whether next() has nothing more to return.
  bool finished() const { return position_ == names_.size(); }

 private:
  std::optional<std::string> next_line(bool wait);

  std::vector<std::optional<std::string>> names_;  // nothing: the lines of the input
  size_t position_ = 0;
  int input_;
  std::string read_;      // of the input, not yet returned
  bool ended_ = false;    // of the input
  int64_t returned_ = 0;  // names
};

}  // namespace sparsight
