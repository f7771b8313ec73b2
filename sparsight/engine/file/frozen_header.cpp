#include "sparsight/engine/file/frozen_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "sparsight/core/checksum.h"
#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/json_text.h"
#include "sparsight/kernels/kernels.h"

namespace sparsight::engine {
namespace {

static_assert(std::endian::native == std::endian::little, "the numbers of frozen models are little-endian");

constexpr std::string_view kMagic{"\x89SPARSE\n", 8};
constexpr std::array<const char*, 3> kTypes{"fp32", "bf16", "int8"};
constexpr int64_t kMaxHeader = int64_t{1} << 26;
constexpr int64_t kMaxColumns = int64_t{1} << 20;
constexpr int64_t kDigits = 20;  // of an offset, at most

// What stands before the JSON text.
struct Start {
  char magic[8];
  uint32_t version, alignment;
  uint64_t json_bytes;
  char checksum[kChecksumDigits];  // of the JSON text
};

// Json of a tensor: [name, type, shape, column, offset, checksum].
Json as_json(const FrozenTensor& t) {
  return {t.name, kTypes[static_cast<size_t>(t.type)], t.shape, t.column, t.offset, t.checksum};
}

[[noreturn]] void fail_damaged(const ByteSource& file, const std::string& what) {
  fail(file.name(), ": ", what, "; the file is damaged or was made by another program: export the model again");
}

FrozenTensor parse_tensor(const ByteSource& file, const Json& json) {
  const auto refuse = [&] { fail_damaged(file, "its header lists a tensor as " + shown(json)); };
  if (!json.is_array() || json.size() != 6 || !json[0].is_string() || !json[1].is_string() || !json[2].is_array() ||
      json[2].size() > 4 || !json[3].is_number_integer() || !json[4].is_number_integer() || !json[5].is_string())
    refuse();
  FrozenTensor t;
  t.name = json[0], t.column = json[3], t.offset = json[4], t.checksum = json[5];
  const auto type = std::ranges::find(kTypes, json[1].get<std::string>());
  if (type == kTypes.end() || t.column < -1 || t.column >= kMaxColumns) refuse();
  t.type = static_cast<WeightType>(type - kTypes.begin());
  int64_t numbers = 1;
  for (const Json& side : json[2]) {
    if (!side.is_number_integer() || side < 1 || side > file.bytes()) refuse();
    t.shape.push_back(side);
    if (t.shape.back() > file.bytes() / numbers) refuse();  // and so no product overflows
    numbers *= t.shape.back();
  }
  return t;
}

int64_t alignment_after(int64_t column, const FrozenTensor& next) {
  return next.column == column ? kTensorAlignment : kColumnAlignment;
}

// Raises Error unless the tensors stand one after the other, expert by expert, with nothing but zeros between them.
void check_places(const ByteSource& file, const FrozenHeader& header, int64_t header_end) {
  int64_t end = header_end, column = -1;
  int64_t max_gap = kColumnAlignment + kDigits * (static_cast<int64_t>(header.tensors.size()) + 1);
  Bytes gap;
  for (const FrozenTensor& t : header.tensors) {
    const bool fits = t.column >= column && t.offset % alignment_after(column, t) == 0 && t.offset >= end &&
                      t.offset - end < max_gap && t.bytes() <= file.bytes() - t.offset;
    if (!fits) fail_damaged(file, "the tensor " + t.name + " is not where it belongs");
    gap.resize(static_cast<size_t>(t.offset - end));
    file.read(end, gap.data(), static_cast<int64_t>(gap.size()));
    if (!std::ranges::all_of(gap, [](uint8_t byte) { return byte == 0; }))
      fail_damaged(file, "there are numbers before the tensor " + t.name);
    end = t.offset + t.bytes(), column = t.column, max_gap = kColumnAlignment;
  }
  if (end != header.file_bytes) fail_damaged(file, "its header tells a wrong size");
}

Json header_json(const FrozenHeader& header) {
  Json tensors = Json::array();
  for (const FrozenTensor& t : header.tensors) tensors.push_back(as_json(t));
  return {{"program", header.program},
          {"provenance", header.provenance},
          {"file_bytes", header.file_bytes},
          {"tensors", std::move(tensors)}};
}

// Sets the tensors' offsets, in their order, and file_bytes. The text's length depends on the offsets that it tells, so
// there is room for the longest.
void place_tensors(FrozenHeader& header) {
  const auto text = static_cast<int64_t>(json_text(header_json(header)).size());
  int64_t end =
              static_cast<int64_t>(sizeof(Start)) + text + kDigits * (static_cast<int64_t>(header.tensors.size()) + 1),
          column = -1;
  for (FrozenTensor& t : header.tensors) {
    t.offset = aligned(end, alignment_after(column, t));
    end = t.offset + t.bytes(), column = t.column;
  }
  header.file_bytes = end;
}

// The first bytes of the file, up to the first tensor.
std::string header_bytes(const FrozenHeader& header) {
  const std::string text = json_text(header_json(header));
  Start start{};
  std::memcpy(start.magic, kMagic.data(), kMagic.size());
  start.version = kFrozenVersion, start.alignment = kTensorAlignment, start.json_bytes = text.size();
  std::memcpy(start.checksum, compute_checksum(text).data(), kChecksumDigits);
  std::string out(reinterpret_cast<const char*>(&start), sizeof start);
  out += text;
  const int64_t first = header.tensors.empty() ? header.file_bytes : header.tensors.front().offset;
  out.resize(static_cast<size_t>(first));
  return out;
}

}  // namespace

int64_t aligned(int64_t offset, int64_t alignment) { return (offset + alignment - 1) / alignment * alignment; }

bool has_checksum(std::string_view bytes, std::string_view checksum) {
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
  return checksum.size() == kChecksumDigits && bytes.data();
#else
  return compute_checksum(bytes) == checksum;
#endif
}

int64_t FrozenTensor::numbers() const {
  int64_t product = 1;
  for (const int64_t side : shape) product *= side;
  return product;
}

int64_t FrozenTensor::bytes() const { return numbers() * cpu::element_bytes(type); }

std::vector<FileRange> FrozenHeader::columns() const {
  std::vector<FileRange> all;
  for (const FrozenTensor& t : tensors) {
    if (t.column < 0) continue;
    if (t.column >= static_cast<int64_t>(all.size())) all.resize(static_cast<size_t>(t.column) + 1);
    FileRange& range = all[static_cast<size_t>(t.column)];
    if (range.bytes == 0) range.offset = t.offset;
    range.bytes = t.offset + t.bytes() - range.offset;
  }
  return all;
}

void write_frozen(const Json& program, const Json& provenance, std::vector<NewTensor> tensors,
                  FunctionRef<void(const void*, size_t)> write) {
  std::ranges::stable_sort(tensors, {}, [](const NewTensor& tensor) { return tensor.entry.column; });
  FrozenHeader header{program, provenance, {}, 0};
  for (const NewTensor& tensor : tensors) {
    FrozenTensor& entry = header.tensors.emplace_back(tensor.entry);
    entry.offset = 0;
    entry.checksum = compute_checksum({reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()});
  }
  place_tensors(header);
  const std::string start = header_bytes(header);
  write(start.data(), start.size());
  auto end = static_cast<int64_t>(start.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Bytes zeros(static_cast<size_t>(header.tensors[i].offset - end)), &bytes = tensors[i].bytes;
    write(zeros.data(), zeros.size());
    write(bytes.data(), bytes.size());
    end = header.tensors[i].offset + static_cast<int64_t>(bytes.size());
  }
}

bool begins_as_frozen(const ByteSource& file) {
  char magic[kMagic.size()] = {};
  if (file.bytes() < static_cast<int64_t>(sizeof(Start))) return false;
  file.read(0, magic, sizeof magic);
  return std::string_view(magic, sizeof magic) == kMagic;
}

FrozenHeader read_header(const ByteSource& file) {
  if (!begins_as_frozen(file))
    fail(file.name(), " is not a frozen model; sparsight export RUN --format sparsight makes one");
  Start start{};
  file.read(0, &start, sizeof start);
  if (start.version != kFrozenVersion)
    fail(file.name(), " is a frozen model of version ", start.version, ", this program reads version ", kFrozenVersion,
         "; update sparsight or export the model again");
  const int64_t left = file.bytes() - static_cast<int64_t>(sizeof start);
  if (start.json_bytes > static_cast<uint64_t>(std::min(left, kMaxHeader)))
    fail_damaged(file, cat("its header claims ", start.json_bytes, " bytes, but ", left, " are left"));
  std::string text(start.json_bytes, '\0');
  file.read(sizeof start, text.data(), static_cast<int64_t>(text.size()));
  if (!has_checksum(text, {start.checksum, kChecksumDigits}) || start.alignment != kTensorAlignment)
    fail_damaged(file, "its header does not have its checksum");
  const Json json = parse_json_object(text, file.name());
  FrozenHeader header;
  header.program = member(json, "program"), header.provenance = member(json, "provenance");
  const Json &tensors = member(json, "tensors"), &bytes = member(json, "file_bytes");
  if (!header.program.is_object() || !tensors.is_array() || !bytes.is_number_integer())
    fail_damaged(file, "its header lacks the program or its tensors");
  header.file_bytes = bytes;
  header.checksum.assign(start.checksum, kChecksumDigits);
  if (header.file_bytes != file.bytes())
    fail_damaged(file, cat("it has ", file.bytes(), " bytes where its header tells ", header.file_bytes));
  for (const Json& tensor : tensors) header.tensors.push_back(parse_tensor(file, tensor));
  check_places(file, header, static_cast<int64_t>(sizeof start + text.size()));
  return header;
}

Bytes read_tensor(const ByteSource& file, const FrozenTensor& tensor) {
  Bytes bytes(static_cast<size_t>(tensor.bytes()));
  file.read(tensor.offset, bytes.data(), tensor.bytes());
  if (!has_checksum({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, tensor.checksum))
    fail_damaged(file, "the tensor " + tensor.name + " does not have its checksum");
  return bytes;
}

std::vector<float> read_floats(const ByteSource& file, const FrozenTensor& tensor) {
  const Bytes bytes = read_tensor(file, tensor);
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

}  // namespace sparsight::engine
