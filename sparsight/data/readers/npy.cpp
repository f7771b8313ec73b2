#include "sparsight/data/readers/npy.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

struct NpyHeader {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;
};

// Reads the header's Python dictionary, whose three values are a string, a bool and a tuple of whole numbers.
class NpyHeaderParser {
 public:
  NpyHeaderParser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  NpyHeader parse() {
    NpyHeader header;
    expect('{');
    while (!take('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr") {
        if (next() != '\'' && next() != '"') fail(name_, ": npy arrays of records are not read; store plain numbers");
        header.descr = quoted();
      } else if (key == "fortran_order") {
        header.fortran_order = boolean();
      } else if (key == "shape") {
        header.shape = tuple();
      } else {
        damaged();
      }
      if (!take(',') && next() != '}') damaged();
    }
    if (next() != '\0' || !header.descr || !header.fortran_order || !header.shape) damaged();
    return header;
  }

 private:
  [[noreturn]] void damaged() const { fail(name_, ": the npy header is damaged near byte ", at_); }
  char next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char wanted) {
    if (next() != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!take(wanted)) damaged();
  }
  std::string quoted() {
    const char quote = next();
    if (quote != '\'' && quote != '"') damaged();
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) damaged();
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }
  bool boolean() {
    next();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    damaged();
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> sizes;
    expect('(');
    while (!take(')')) {
      if (!std::isdigit(static_cast<unsigned char>(next()))) damaged();
      int64_t size = 0;
      for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])); ++at_) {
        size = size * 10 + (text_[at_] - '0');
        if (size > kMaxFileBytes) fail(name_, ": the npy header claims an axis of more than ", kMaxFileBytes);
      }
      sizes.push_back(size);
      if (sizes.size() > 8) fail(name_, ": npy arrays have at most 8 axes here");
      if (!take(',') && next() != ')') damaged();
    }
    return sizes;
  }

  std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
};

struct NpyType {
  at::ScalarType type;
  int64_t bytes;
};

NpyType npy_type(const std::string& descr, const std::string& name) {
  const std::pair<const char*, NpyType> known[] = {
      {"|u1", {at::kByte, 1}}, {"|i1", {at::kChar, 1}},  {"|b1", {at::kByte, 1}},  {"<i4", {at::kInt, 4}},
      {"<i8", {at::kLong, 8}}, {"<f4", {at::kFloat, 4}}, {"<f8", {at::kDouble, 8}}};
  const bool one_byte = descr == "<u1" || descr == "<i1";
  for (const auto& [text, type] : known)
    if (descr == text || (one_byte && descr.substr(1) == std::string(text).substr(1))) return type;
  fail(name, ": npy type \"", printable(descr), "\" is not read; store b1, u1, i1, i4, i8, f4 or f8, little-endian");
}

// Where the dictionary starts and ends.
std::pair<size_t, size_t> npy_header_span(ByteView bytes, const std::string& name) {
  static constexpr uint8_t kMagic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
  if (bytes.size() < 10 || !std::equal(std::begin(kMagic), std::end(kMagic), bytes.begin()))
    fail(name, " is not an npy file: it must start with \\x93NUMPY and a header");
  const int version = bytes[6];
  if (version < 1 || version > 3) fail(name, ": npy version ", version, " is not known; 1, 2 and 3 are");
  size_t start = 10, length = bytes[8] | bytes[9] << 8;
  if (version > 1) {
    if (bytes.size() < 12) fail(name, ": the npy header ends early");
    start = 12;
    length |= static_cast<size_t>(bytes[10]) << 16 | static_cast<size_t>(bytes[11]) << 24;
  }
  if (length > bytes.size() - start)
    fail(name, ": the npy header claims ", length, " bytes, the file has ", bytes.size() - start, " after it");
  return {start, start + length};
}

}  // namespace

at::Tensor parse_npy(Bytes bytes, const std::string& name) {
  const auto [start, end] = npy_header_span(bytes, name);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + start, end - start);
  NpyHeader header = NpyHeaderParser(text, name).parse();
  const NpyType type = npy_type(*header.descr, name);
  if (!fits(*header.shape, kMaxFileBytes / type.bytes))
    fail(name, ": the npy header claims more than ", kMaxFileBytes, " bytes; the header is damaged");
  int64_t count = type.bytes;
  for (const int64_t size : *header.shape) count *= size;
  const auto held = static_cast<int64_t>(bytes.size() - end);
  if (held != count)
    fail(name, held < count ? " is cut off: its header promises " : " holds more than its header promises: ", count,
         " bytes of values, it has ", held, "; store the array again");
  std::vector<int64_t> sizes = *header.shape;
  if (*header.fortran_order) std::reverse(sizes.begin(), sizes.end());
  // view() copies the values to storage with the alignment of their type, which an offset in a file may not have.
  sizes.push_back(type.bytes);
  at::Tensor values = adopt(std::move(bytes), end, sizes).clone().view(type.type).squeeze(-1);
  if (*header.descr == "|b1") values = values.ne(0);  // a bool of another value than 0 and 1 would be undefined
  if (!*header.fortran_order) return values;
  std::vector<int64_t> order(header.shape->size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(order.size() - 1 - i);
  return values.permute(order).contiguous();
}

at::Tensor read_npy(const std::string& path) { return parse_npy(read_bytes(path), printable(path)); }

}  // namespace sparsight
