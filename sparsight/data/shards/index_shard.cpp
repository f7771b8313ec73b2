#include "sparsight/data/shards/index_shard.h"

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/core/limits.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/shards/tar_members.h"
#include "sparsight/engine/images/decode.h"

namespace sparsight {
namespace {

constexpr int64_t kMaxLabelBytes = 4096;

struct SampleMember {
  std::string key, ending;  // "d/000123", "jpg" in lower case; no key: it belongs to no sample
};

SampleMember split_name(const std::string& name) {
  const size_t slash = name.rfind('/'), begin = slash == std::string::npos ? 0 : slash + 1;
  const size_t dot = name.find('.', begin);
  if (dot == std::string::npos || dot == begin) return {};
  SampleMember member{name.substr(0, dot), name.substr(dot + 1)};
  for (char& c : member.ending)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return member;
}

// Whole images: a picture of another kind has an ending of two parts, such as "seg.png".
bool is_image_ending(const std::string& ending) {
  return ending.find('.') == std::string::npos && engine::has_image_ending("x." + ending);
}

std::string trimmed_label(const std::string& text) {
  constexpr const char* kBlank = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlank);
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(kBlank) + 1 - first);
}

class SampleGrouper {
 public:
  explicit SampleGrouper(const engine::ByteSource& shard) : shard_(shard) { index_.bytes = shard.bytes(); }

  void add(const TarMember& member) {
    const auto [key, ending] = split_name(member.name);
    if (key.empty()) return;
    if (key != key_) end_sample();
    key_ = key;
    if (ending == "cls") {
      if (has_label_) fail_sample("has two labels; a sample has one member .cls");
      has_label_ = true;
      image_.label = read_label(member);
    } else if (is_image_ending(ending)) {
      if (has_image_)
        fail_sample("has two images, ", printable(image_.name), " and ", printable(member.name),
                    "; pack the shard again with one per sample");
      has_image_ = true;
      if (member.bytes > kMaxImageFileBytes)
        fail(shard_.name(), ": member ", printable(member.name), " has ", member.bytes, " bytes; an image has at most ",
             kMaxImageFileBytes);
      image_.name = member.name, image_.offset = member.offset, image_.bytes = member.bytes;
    }
  }

  ShardIndex finish() {
    end_sample();
    if (index_.images.empty())
      fail(shard_.name(), " has no samples; those of a WebDataset are members such as 000123.jpg and 000123.cls");
    return std::move(index_);
  }

 private:
  void end_sample() {
    if (key_.empty()) return;
    if (!has_image_) fail_sample("has no image (", engine::image_kinds(), "); pack the shard again");
    if (!has_label_) fail_sample("has no label; add a member ", printable(key_), ".cls with its class");
    index_.images.push_back(std::move(image_));
    image_ = {}, has_image_ = has_label_ = false;
    key_.clear();
  }

  std::string read_label(const TarMember& member) const {
    if (member.bytes > kMaxLabelBytes)
      fail(shard_.name(), ": member ", printable(member.name), " has ", member.bytes, " bytes; a label has at most ",
           kMaxLabelBytes);
    std::string text(static_cast<size_t>(member.bytes), '\0');
    shard_.read(member.offset, text.data(), member.bytes);
    std::string label = trimmed_label(text);
    if (label.empty() || label.find('\n') != std::string::npos)
      fail(shard_.name(), ": member ", printable(member.name), label.empty() ? " is empty" : " has several lines",
           "; it must hold a class, as a number or a name");
    if (!is_utf8(label)) fail(shard_.name(), ": member ", printable(member.name), " is not UTF-8 text");
    return label;
  }

  template <class... Parts>
  [[noreturn]] void fail_sample(const Parts&... parts) const {
    fail(shard_.name(), ": sample ", printable(key_), " ", parts...);
  }

  const engine::ByteSource& shard_;
  ShardIndex index_;
  std::string key_;  // of the sample that is being read
  ShardImage image_;
  bool has_image_ = false, has_label_ = false;
};

}  // namespace

ShardIndex index_shard(const engine::ByteSource& shard) {
  SampleGrouper samples(shard);
  for_each_tar_member(shard, [&](const TarMember& member) { samples.add(member); });
  return samples.finish();
}

}  // namespace sparsight
