#include "sparsight/data/shards/index_file.h"

#include <nlohmann/json.hpp>
#include <set>

#include "sparsight/core/checksum.h"
#include "sparsight/core/error.h"
#include "sparsight/core/limits.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/shards/shard_names.h"
#include "sparsight/data/shards/tar_header.h"
#include "sparsight/io/checked_json.h"

namespace sparsight {
namespace {

constexpr const char* kShardsFormat = "sparsight-shards";
constexpr int64_t kShardsVersion = 1;
constexpr size_t kMaxLine = size_t{1} << 26;
// Where what is read could be a number of any size.
constexpr int64_t kMaxShardBytes = int64_t{1} << 50;

bool is_number(const std::string& label) {
  return !label.empty() && label.size() <= 18 && label.find_first_not_of("0123456789") == std::string::npos &&
         (label == "0" || label[0] != '0');
}

class IndexLine {
 public:
  IndexLine(const Json& line, std::string where) : line_(line), where_(std::move(where)) {}

  ShardIndex index() const {
    ShardIndex index;
    index.shard = text_of(value("shard"), "shard");
    if (!is_shard_name(index.shard))
      fail(where_, ": \"", printable(index.shard), "\" is no path below the shards' folder");
    index.split = line_.contains("split") ? text_of(value("split"), "split") : "";
    index.sha256 = line_.contains("sha256") ? text_of(value("sha256"), "sha256") : "";
    index.bytes = number_of(value("bytes"), "bytes", kMaxShardBytes);
    const Json &names = list("images"), &offsets = list("offsets"), &sizes = list("sizes"), &labels = list("labels");
    const Json none = Json::array();
    const Json& checksums = line_.contains("checksums") ? list("checksums") : none;
    for (const Json* other : {&offsets, &sizes, &labels, &checksums})
      if (other->size() != names.size() && (other != &checksums || !other->empty()))
        fail(where_, ": images, offsets, sizes, labels and checksums have different lengths");
    for (size_t i = 0; i < names.size(); ++i) {
      ShardImage image{text_of(names[i], "images"), number_of(offsets[i], "offsets", index.bytes),
                       number_of(sizes[i], "sizes", kMaxImageFileBytes), label_of(labels[i]),
                       checksums.empty() ? "" : text_of(checksums[i], "checksums")};
      if (image.bytes > index.bytes - image.offset || image.offset < static_cast<int64_t>(kTarBlock))
        fail(where_, ": image ", printable(image.name), " is not inside its shard ", index.shard);
      if (!image.checksum.empty() && (image.checksum.size() != kChecksumDigits ||
                                      image.checksum.find_first_not_of("0123456789abcdef") != std::string::npos))
        fail(where_, ": the checksum of ", printable(image.name), " is not ", kChecksumDigits, " hexadecimal digits");
      index.images.push_back(std::move(image));
    }
    if (index.images.empty()) fail(where_, ": shard ", index.shard, " has no images");
    return index;
  }

 private:
  const Json& value(const char* key) const {
    const auto found = line_.find(key);
    if (found == line_.end()) fail(where_, " has no ", key);
    return *found;
  }
  const Json& list(const char* key) const {
    const Json& values = value(key);
    if (!values.is_array()) fail(where_, ": ", key, " is not a list");
    return values;
  }
  std::string text_of(const Json& json, const char* key) const {
    if (!json.is_string()) fail(where_, ": ", key, " must be text, got ", shown(json));
    return json.get<std::string>();
  }
  int64_t number_of(const Json& json, const char* key, int64_t most) const {
    if (!json.is_number_integer() || json < 0 || json > most)
      fail(where_, ": ", key, " must be whole numbers from 0 to ", most, ", got ", shown(json));
    return json.get<int64_t>();
  }
  std::string label_of(const Json& json) const {
    if (json.is_string() && !json.get<std::string>().empty()) return json.get<std::string>();
    return std::to_string(number_of(json, "labels", kMaxShardBytes));
  }

  const Json& line_;
  std::string where_;
};

size_t shards_in_header(const Json& header, const std::string& name) {
  const auto number = [&](const char* key) {
    const auto found = header.find(key);
    return found != header.end() && found->is_number_unsigned() ? found->get<size_t>() : 0;
  };
  if (header.value("format", Json()) != Json(kShardsFormat))
    fail(name, " is not an index of shards; write it with `sparsight data shard`");
  if (number("version") != kShardsVersion)
    fail(name, " has version ", number("version"), " of the index of shards; this program reads version ",
         kShardsVersion);
  return number("shards");
}

}  // namespace

std::string index_file_begin(size_t shards) {
  return checked_json_line({{"format", kShardsFormat}, {"version", kShardsVersion}, {"shards", shards}});
}

std::string index_file_line(const ShardIndex& index) {
  Json names = Json::array(), offsets = Json::array(), sizes = Json::array(), labels = Json::array(),
       checksums = Json::array();
  for (const ShardImage& image : index.images) {
    names.push_back(image.name);
    offsets.push_back(image.offset);
    sizes.push_back(image.bytes);
    labels.push_back(is_number(image.label) ? Json(std::stoll(image.label)) : Json(image.label));
    if (!image.checksum.empty()) checksums.push_back(image.checksum);
  }
  Json line{{"shard", index.shard}};
  if (!index.split.empty()) line["split"] = index.split;
  line["bytes"] = index.bytes;
  if (!index.sha256.empty()) line["sha256"] = index.sha256;
  line["images"] = std::move(names);
  line["offsets"] = std::move(offsets);
  line["sizes"] = std::move(sizes);
  line["labels"] = std::move(labels);
  if (!checksums.empty()) line["checksums"] = std::move(checksums);
  return checked_json_line(line);
}

void read_index_file(std::string_view text, const std::string& name, const std::function<void(ShardIndex)>& take) {
  std::set<std::string> seen;
  size_t expected = 0, number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string where = cat(name, ":", ++number);
    if (content.size() > kMaxLine) fail(where, " has ", content.size(), " bytes; a line has at most ", kMaxLine);
    const Json line = parse_checked_object(content, where);
    if (number == 1) {
      expected = shards_in_header(line, name);
      continue;
    }
    ShardIndex index = IndexLine(line, where).index();
    if (!seen.insert(index.shard).second) fail(where, " names ", index.shard, " again");
    take(std::move(index));
  }
  if (number == 0) fail(name, " is empty; write it with `sparsight data shard`");
  if (seen.size() != expected)
    fail(name, " has ", seen.size(), " of its ", expected, " shards; it was cut off, get it again");
}

}  // namespace sparsight
