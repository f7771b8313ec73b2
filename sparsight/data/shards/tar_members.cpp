#include "sparsight/data/shards/tar_members.h"

#include <charconv>
#include <optional>
#include <string_view>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/shards/tar_header.h"

namespace sparsight {
namespace {

constexpr int64_t kMaxPaxBytes = int64_t{1} << 20;

// What GNU and pax headers say about the member after them.
struct LongFields {
  std::optional<std::string> name;
  std::optional<int64_t> bytes;
};

const char* refused_kind(char type) {
  switch (type) {
    case '1':
      return "a hard link";
    case '2':
      return "a symbolic link";
    case '3':
    case '4':
      return "a device";
    case '6':
      return "a pipe";
    case 'S':
      return "a sparse file";
    default:
      return "of an unknown kind";
  }
}

class TarMembers {
 public:
  explicit TarMembers(const engine::ByteSource& shard) : shard_(shard) {}

  // Nothing at the end of the archive.
  std::optional<TarMember> next() {
    LongFields fields;
    while (true) {
      const TarHeader header = read_header();
      if (is_tar_end(header)) return std::nullopt;
      if (!has_right_checksum(header))
        fail(shard_.name(), at_ == 0 ? " is not a tar archive" : " is damaged", ": there is no tar header at byte ",
             at_, at_ == 0 ? "; shards are plain .tar files, not compressed" : "; get it again");
      if (header.type == 'x') {
        read_pax(extension(header, kMaxPaxBytes), fields);
      } else if (header.type == 'L') {
        std::string name = extension(header, kMaxTarName + 1);
        while (name.ends_with('\0')) name.pop_back();
        fields.name = std::move(name);
      } else if (header.type == 'K' || header.type == 'g') {
        extension(header, kMaxPaxBytes);
      } else if (auto member = file(header, fields)) {
        return member;
      } else {
        fields = {};
      }
    }
  }

 private:
  TarHeader read_header() const {
    if (shard_.bytes() - at_ < static_cast<int64_t>(kTarBlock))
      fail(shard_.name(), " ends early: at byte ", shard_.bytes(), " there is no end of the archive; get it again");
    TarHeader header;
    shard_.read(at_, &header, kTarBlock);
    return header;
  }

  // Moves on to the next header.
  void pass(const std::string& name, int64_t bytes) {
    const int64_t left = shard_.bytes() - at_ - static_cast<int64_t>(kTarBlock);
    if (bytes > left)
      fail(shard_.name(), ": member ", printable(name), " is said to have ", bytes, " bytes, but ", left,
           " are left; the shard is cut off or damaged, get it again");
    at_ += static_cast<int64_t>(kTarBlock) + bytes + tar_padding(bytes);
  }

  int64_t size_of(const TarHeader& header) const {
    const std::optional<int64_t> bytes = tar_size(header);
    if (!bytes)
      fail(shard_.name(), ": member ", printable(tar_name(header)), " has no valid size; the shard is damaged");
    return *bytes;
  }

  // The content of a header that describes the next member.
  std::string extension(const TarHeader& header, int64_t max_bytes) {
    const int64_t bytes = size_of(header), content = at_ + static_cast<int64_t>(kTarBlock);
    if (bytes > max_bytes)
      fail(shard_.name(), ": the name of a member or its other fields have ", bytes, " bytes at byte ", at_,
           "; at most ", max_bytes, " are read");
    pass("", bytes);
    std::string text(static_cast<size_t>(bytes), '\0');
    shard_.read(content, text.data(), bytes);
    return text;
  }

  // Records "25 path=some/long/name\n", whose number is the length of the record.
  void read_pax(std::string_view text, LongFields& fields) const {
    while (!text.empty()) {
      size_t length = 0;
      const auto [digits, error] = std::from_chars(text.data(), text.data() + text.size(), length);
      const auto blank = static_cast<size_t>(digits - text.data());
      if (error != std::errc() || length > text.size() || length < blank + 2 || text[blank] != ' ' ||
          text[length - 1] != '\n')
        fail_pax();
      const std::string_view record = text.substr(blank + 1, length - blank - 2);
      const size_t equals = record.find('=');
      if (equals == std::string_view::npos) fail_pax();
      const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
      if (key == "path") fields.name = std::string(value);
      if (key == "size") fields.bytes = pax_size(value);
      if (key.starts_with("GNU.sparse."))
        fail(shard_.name(), ": there is a sparse file at byte ", at_, "; pack the shard again with plain files");
      text.remove_prefix(length);
    }
  }

  int64_t pax_size(std::string_view value) const {
    int64_t bytes = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), bytes);
    if (error != std::errc() || end != value.data() + value.size() || bytes < 0) fail_pax();
    return bytes;
  }

  [[noreturn]] void fail_pax() const {
    fail(shard_.name(), " is damaged: the pax header before byte ", at_, " has no valid records; get it again");
  }

  // Nothing for a directory.
  std::optional<TarMember> file(const TarHeader& header, const LongFields& fields) {
    TarMember member{fields.name.value_or(tar_name(header)), at_ + static_cast<int64_t>(kTarBlock),
                     fields.bytes ? *fields.bytes : size_of(header)};
    if (static_cast<int64_t>(member.name.size()) > kMaxTarName || member.name.find('\0') != std::string::npos)
      fail(shard_.name(), ": the member at byte ", at_, " has a name of ", member.name.size(),
           " bytes; names have at most ", kMaxTarName, ", without NUL");
    const bool is_plain = header.type == '0' || header.type == '\0' || header.type == '7';
    if (!is_plain && header.type != '5')
      fail(shard_.name(), ": member ", printable(member.name), " is ", refused_kind(header.type),
           "; pack the shard again with plain files");
    pass(member.name, member.bytes);
    if (header.type == '5' || member.name.ends_with('/')) return std::nullopt;
    return member;
  }

  const engine::ByteSource& shard_;
  int64_t at_ = 0;  // of the next header
};

}  // namespace

void for_each_tar_member(const engine::ByteSource& shard, const std::function<void(const TarMember&)>& take) {
  TarMembers members(shard);
  while (const std::optional<TarMember> member = members.next()) take(*member);
}

}  // namespace sparsight
