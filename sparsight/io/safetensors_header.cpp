#include "sparsight/io/safetensors_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sparsight/core/checksum.h"
#include "sparsight/core/error.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

struct TypeName {
  const char* name;
  at::ScalarType type;
};
constexpr TypeName kTypes[] = {
    {"F64", at::kDouble},          {"F32", at::kFloat},        {"F16", at::kHalf},
    {"BF16", at::kBFloat16},       {"I64", at::kLong},         {"I32", at::kInt},
    {"I16", at::kShort},           {"I8", at::kChar},          {"U8", at::kByte},
    {"BOOL", at::kBool},           {"U16", at::kUInt16},       {"U32", at::kUInt32},
    {"U64", at::kUInt64},          {"C64", at::kComplexFloat}, {"F8_E4M3", at::kFloat8_e4m3fn},
    {"F8_E5M2", at::kFloat8_e5m2},
};
constexpr size_t kMaxDimensions = 64;  // the limit of torch's kernels
// {name: {key: [number]}}; 10,000 keys are of the metadata.
constexpr JsonLimits kLimits{.depth = 3, .keys = 10'000, .values = 40'000};
const std::string kHeaderChecksum = "xxh3-header", kTensorChecksums = "xxh3-tensors";

at::ScalarType read_type(const Json& entry, const std::string& name, const std::string& path) {
  const Json value = entry.value("dtype", Json());
  std::string known;
  for (const TypeName& type : kTypes) {
    if (value == type.name) return type.type;
    known += (known.empty() ? "" : ", ") + std::string(type.name);
  }
  fail(path, ": tensor ", printable(name), " has the unknown type ", printable(value.dump()), " (known: ", known, ")");
}

// The list of non-negative integers at `key`.
std::vector<uint64_t> read_counts(const Json& entry, const char* key, const std::string& name,
                                  const std::string& path) {
  const Json list = entry.value(key, Json());
  std::vector<uint64_t> counts;
  bool good = list.is_array();
  if (good)
    for (const Json& value : list) {
      good = good && value.is_number_unsigned() && value.get<uint64_t>() <= INT64_MAX;
      if (good) counts.push_back(value.get<uint64_t>());
    }
  if (!good)
    fail(path, ": tensor ", printable(name), " must have a list of whole numbers as ", key, ", got ",
         printable(list.dump()));
  return counts;
}

TensorEntry read_entry(const std::string& name, const Json& value, uint64_t data_bytes, const std::string& path) {
  if (!value.is_object())
    fail(path, ": tensor ", printable(name), " must be described by an object, got ", printable(value.dump()));
  TensorEntry entry{name, read_type(value, name, path), {}, 0, 0};
  const std::vector<uint64_t> shape = read_counts(value, "shape", name, path);
  const std::vector<uint64_t> offsets = read_counts(value, "data_offsets", name, path);
  if (shape.size() > kMaxDimensions)
    fail(path, ": tensor ", printable(name), " has ", shape.size(), " dimensions, at most ", kMaxDimensions,
         " are allowed");
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data_bytes)
    fail(path, ": tensor ", printable(name), " is at ", value["data_offsets"].dump(), " but the file has ", data_bytes,
         " bytes of tensors; it is truncated or damaged");
  // A size of zero counts as one in the overflow check: strides are products over all sizes.
  uint64_t bytes = at::elementSize(entry.type), strides = bytes;
  for (const uint64_t size : shape) {
    entry.shape.push_back(static_cast<int64_t>(size));
    const uint64_t limit = INT64_MAX;
    if (strides > limit / std::max<uint64_t>(size, 1))
      fail(path, ": tensor ", printable(name), " has an impossible shape");
    strides *= std::max<uint64_t>(size, 1);
    bytes *= size;
  }
  entry.begin = offsets[0];
  entry.end = offsets[1];
  if (entry.end - entry.begin != bytes)
    fail(path, ": tensor ", printable(name), " of shape ", Json(shape).dump(), " needs ", bytes, " bytes but has ",
         entry.end - entry.begin);
  return entry;
}

// Every byte belongs to exactly one tensor.
void check_cover(const std::vector<TensorEntry>& tensors, uint64_t data_bytes, const std::string& path) {
  std::vector<const TensorEntry*> sorted;
  for (const TensorEntry& entry : tensors) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(), [](const TensorEntry* a, const TensorEntry* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  uint64_t covered = 0;
  for (const TensorEntry* entry : sorted) {
    if (entry->begin != covered)
      fail(path, ": tensor ", printable(entry->name),
           entry->begin < covered ? " overlaps another one" : " leaves a gap before it", " at byte ", entry->begin,
           "; the file is damaged");
    covered = entry->end;
  }
  if (covered != data_bytes)
    fail(path, ": ", data_bytes - covered, " bytes at the end belong to no tensor; the file is damaged");
}

// The `"key":"` before the header's own checksum. Quotes inside strings are escaped in JSON, so this text is
// unique in what safetensors_header_text() writes.
const std::string kBeforeHeaderChecksum = "\"" + kHeaderChecksum + "\":\"";

// The checksum of `json` with zeros in its place, which begins at `position`.
std::string header_checksum(std::string_view json, size_t position) {
  Checksum checksum;
  const std::string zeros(kChecksumDigits, '0');
  const size_t end = position + kChecksumDigits;
  checksum.update(json.data(), position);
  checksum.update(zeros.data(), zeros.size());
  checksum.update(json.data() + end, json.size() - end);
  return checksum.hex();
}

// Moves the checksums from the metadata to the tensors, after a check of the header's own.
void take_checksums(SafetensorsHeader& header, std::string_view json, const std::string& path) {
  const auto own = header.metadata.find(kHeaderChecksum), of_tensors = header.metadata.find(kTensorChecksums);
  if (own == header.metadata.end() && of_tensors == header.metadata.end()) return;
  const size_t before = json.find(kBeforeHeaderChecksum), position = before + kBeforeHeaderChecksum.size();
  const bool matches = own != header.metadata.end() && of_tensors != header.metadata.end() &&
                       own->second.size() == kChecksumDigits && before != std::string_view::npos &&
                       header_checksum(json, position) == own->second &&
                       of_tensors->second.size() == kChecksumDigits * header.tensors.size();
  if (!matches)
    fail(path,
         ": the header does not match its checksum; the file is damaged. (A program that rewrites such a file must "
         "leave out the metadata ",
         kHeaderChecksum, " and ", kTensorChecksums, ")");
  for (size_t i = 0; i < header.tensors.size(); ++i)
    header.tensors[i].checksum = of_tensors->second.substr(i * kChecksumDigits, kChecksumDigits);
  header.metadata.erase(kHeaderChecksum);
  header.metadata.erase(kTensorChecksums);
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t data_bytes, const std::string& path) {
  SafetensorsHeader header;
  const std::string what = path + " is not a safetensors file: its header";
  for_each_member(json, what, kLimits, [&](const std::string& name, const Json& value) {
    if (name != "__metadata__") {
      header.tensors.push_back(read_entry(name, value, data_bytes, path));
      return;
    }
    if (!value.is_object()) fail(path, ": __metadata__ must be an object of strings");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string())
        fail(path, ": __metadata__ must hold strings, got ", printable(text.dump()), " for \"", printable(key), "\"");
      header.metadata[key] = text.get<std::string>();
    }
  });
  check_cover(header.tensors, data_bytes, path);
  take_checksums(header, json, path);
  return header;
}

std::string safetensors_header_text(const SafetensorsHeader& header) {
  std::map<std::string, std::string> metadata = header.metadata;
  for (const TensorEntry& entry : header.tensors) metadata[kTensorChecksums] += entry.checksum;
  if (header.tensors.empty() || metadata[kTensorChecksums].size() != kChecksumDigits * header.tensors.size())
    metadata.erase(kTensorChecksums);
  else
    metadata[kHeaderChecksum] = std::string(kChecksumDigits, '0');
  Json tree = Json::object();
  if (!metadata.empty()) tree["__metadata__"] = metadata;
  // Written as text, entry by entry: an ordered JSON object looks every new key up among all earlier ones.
  std::string text = tree.dump();
  text.pop_back();
  for (const TensorEntry& entry : header.tensors) {
    const auto type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                   [&](const TypeName& candidate) { return candidate.type == entry.type; });
    if (type == std::end(kTypes))
      fail("tensor ", entry.name, " of type ", at::toString(entry.type), " cannot be stored in a safetensors file");
    const Json value{{"dtype", type->name}, {"shape", entry.shape}, {"data_offsets", {entry.begin, entry.end}}};
    text += (text.size() > 1 ? "," : "") + Json(entry.name).dump() + ":" + value.dump();
  }
  text += "}";
  text.append((8 - text.size() % 8) % 8, ' ');
  if (metadata.contains(kHeaderChecksum)) {
    const size_t position = text.find(kBeforeHeaderChecksum) + kBeforeHeaderChecksum.size();
    text.replace(position, kChecksumDigits, header_checksum(text, position));
  }
  return text;
}

}  // namespace sparsight
