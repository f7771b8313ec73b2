#include "sparsight/io/torch_pickle.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "sparsight/core/error.h"
#include "sparsight/core/input_file.h"
#include "sparsight/core/limits.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/pickle.h"
#include "sparsight/io/zip_archive.h"

namespace sparsight {
namespace {

using Kind = PickleValue::Kind;

constexpr size_t kMaxPickledDimensions = 64;
// torch.save stores without compression; a re-zipped file may be smaller than its tensors, but not by any factor.
constexpr size_t kMaxExpansion = 8;
const char* const kStateDictKeys[] = {"state_dict", "model_state_dict", "model_state", "model",
                                      "net",        "weights",          "model_dict"};

std::optional<at::ScalarType> type_of_storage(const std::string& name) {
  static const std::map<std::string, at::ScalarType> types = {{"torch.DoubleStorage", at::kDouble},
                                                              {"torch.FloatStorage", at::kFloat},
                                                              {"torch.HalfStorage", at::kHalf},
                                                              {"torch.BFloat16Storage", at::kBFloat16},
                                                              {"torch.LongStorage", at::kLong},
                                                              {"torch.IntStorage", at::kInt},
                                                              {"torch.ShortStorage", at::kShort},
                                                              {"torch.CharStorage", at::kChar},
                                                              {"torch.ByteStorage", at::kByte},
                                                              {"torch.BoolStorage", at::kBool},
                                                              {"torch.ComplexFloatStorage", at::kComplexFloat},
                                                              {"torch.ComplexDoubleStorage", at::kComplexDouble}};
  const auto found = types.find(name);
  return found == types.end() ? std::nullopt : std::optional(found->second);
}

// Sparse, quantised and other torch tensors that are not plain dense arrays.
bool is_foreign_tensor(const PickleValue& value) {
  return value.kind == Kind::kObject && value.text.rfind("torch._utils._rebuild_", 0) == 0;
}

bool is_tensor(const PickleValue& value) { return value.kind == Kind::kTensor || is_foreign_tensor(value); }

// Names with their values; of two equal names the later one wins, as in Python.
using Entries = std::vector<std::pair<std::string, uint32_t>>;

class TorchFile {
 public:
  explicit TorchFile(const std::string& path)
      : path_(path), file_bytes_(std::filesystem::file_size(path)), zip_(path), prefix_(zip_.first_folder()) {
    if (!has("data.pkl")) fail(path, " is a zip file but not one of torch.save");
    if (has("constants.pkl"))
      fail(path,
           " is a TorchScript program; in Python, save its weights: torch.save(model.state_dict(), \"weights.pt\")");
    if (has("byteorder") && text("byteorder", 16) != "little")
      fail(path, " was written on a big-endian machine, which is not supported");
    pickle_ = parse_pickle(text("data.pkl", kMaxPickleBytes), path);
  }

  NamedTensors state_dict() {
    NamedTensors tensors;
    for (const auto& [name, index] : entries_of_state_dict()) {
      const PickleValue& value = pickle_.at(index);
      if (value.kind == Kind::kTensor) tensors.emplace_back(name, tensor(name, value));
      if (is_foreign_tensor(value))
        fail(path_, ": ", printable(name), " is made by ", printable(value.text),
             ", which is not supported; save plain dense tensors");
    }
    return tensors;
  }

 private:
  [[noreturn]] void bad_tensor(const std::string& name, const std::string& why) const {
    fail(path_, ": tensor ", printable(name), " ", why, "; the file is damaged");
  }

  bool has(const std::string& record) const { return zip_.has(prefix_ + record); }

  size_t checked_size(const std::string& record, size_t limit) {
    const uint64_t bytes = zip_.bytes(prefix_ + record);
    if (bytes > limit)
      fail(path_, ": its record ", printable(record), " claims ", bytes, " bytes, at most ", limit, " are allowed");
    return bytes;
  }

  std::string text(const std::string& record, size_t limit) {
    std::string bytes(checked_size(record, limit), '\0');
    if (!zip_.read(prefix_ + record, bytes.data(), bytes.size()))
      fail(path_, ": its record ", printable(record), " does not match its checksum; the file is damaged");
    return bytes;
  }

  Entries entries(const PickleValue& dict) const {
    Entries entries;
    std::map<std::string, size_t> key_to_index;
    for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
      const PickleValue& key = pickle_.at(dict.items[i]);
      if (key.kind != Kind::kText) continue;
      const auto [entry, is_new] = key_to_index.try_emplace(key.text, entries.size());
      if (is_new) entries.emplace_back(key.text, 0);
      entries[entry->second].second = dict.items[i + 1];
    }
    return entries;
  }

  Entries entries_of_state_dict() const {
    uint32_t at = pickle_.root;
    for (int depth = 0; depth < 4; ++depth) {
      const PickleValue& value = pickle_.at(at);
      if (value.kind == Kind::kObject)
        fail(path_, " holds a Python object of ", printable(value.text),
             "; in Python, save its weights: torch.save(model.state_dict(), \"weights.pt\")");
      if (value.kind != Kind::kDict) break;
      Entries found = entries(value);
      if (std::any_of(found.begin(), found.end(),
                      [&](const auto& entry) { return is_tensor(pickle_.at(entry.second)); }))
        return found;
      const auto inner = find_inner(found);
      if (!inner) break;
      at = *inner;
    }
    fail(path_, " has no state dict: no dict of tensors at the top level or under a usual key such as \"state_dict\"");
  }

  static std::optional<uint32_t> find_inner(const Entries& entries) {
    for (const char* key : kStateDictKeys)
      for (const auto& [name, index] : entries)
        if (name == key) return index;
    return std::nullopt;
  }

  int64_t integer(const std::string& name, uint32_t index) const {
    const PickleValue& value = pickle_.at(index);
    if (value.kind != Kind::kInteger || value.number < 0) bad_tensor(name, "has a shape that is not integers >= 0");
    return value.number;
  }

  std::vector<int64_t> integers(const std::string& name, uint32_t index) const {
    const PickleValue& list = pickle_.at(index);
    if ((list.kind != Kind::kTuple && list.kind != Kind::kList) || list.items.size() > kMaxPickledDimensions)
      bad_tensor(name, "has no list of sizes as shape");
    std::vector<int64_t> integers;
    for (const uint32_t item : list.items) integers.push_back(integer(name, item));
    return integers;
  }

  at::Tensor tensor(const std::string& name, const PickleValue& arguments) {  // (storage, offset, size, stride, ...)
    if (arguments.items.size() < 4 || pickle_.at(arguments.items[0]).kind != Kind::kStorage)
      bad_tensor(name, "has no storage");
    const at::Tensor& flat = storage(name, pickle_.at(arguments.items[0]));
    const int64_t offset = integer(name, arguments.items[1]);
    const std::vector<int64_t> sizes = integers(name, arguments.items[2]), strides = integers(name, arguments.items[3]);
    if (sizes.size() != strides.size()) bad_tensor(name, "does not have as many strides as sizes");
    // The last element must lie in the storage, and there must be no more elements than the storage has.
    int64_t last = offset, count = 1, scratch;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (__builtin_mul_overflow(count, sizes[i], &count) || __builtin_mul_overflow(sizes[i], strides[i], &scratch) ||
          __builtin_add_overflow(last, std::max<int64_t>(sizes[i] - 1, 0) * strides[i], &last))
        bad_tensor(name, "has an impossible shape");
    }
    if (count == 0) return at::empty(sizes_without_storage(name, sizes), flat.options());
    if (count > flat.numel() || last >= flat.numel()) bad_tensor(name, "reaches beyond its storage");
    return flat.as_strided(sizes, strides, offset);
  }

  // A size of zero makes any other size cheap, yet strides are products over all.
  std::vector<int64_t> sizes_without_storage(const std::string& name, const std::vector<int64_t>& sizes) const {
    int64_t product = 1;
    for (const int64_t size : sizes)
      if (__builtin_mul_overflow(product, std::max<int64_t>(size, 1), &product))
        bad_tensor(name, "has an impossible shape");
    return sizes;
  }

  // The storage as a flat tensor; several tensors can share one.
  const at::Tensor& storage(const std::string& name, const PickleValue& id) {  // ("storage", type, key, device, count)
    if (id.items.size() < 5 || pickle_.at(id.items[2]).kind != Kind::kText) bad_tensor(name, "has no storage");
    const std::string& type_name = pickle_.at(id.items[1]).text;
    const auto type = type_of_storage(type_name);
    if (!type) fail(path_, ": tensor ", printable(name), " has the unsupported type ", printable(type_name));
    const std::string& key = pickle_.at(id.items[2]).text;
    const std::string record = "data/" + key;
    at::Tensor& flat = storages_[{key, *type}];
    if (flat.defined()) return flat;
    if (!has(record)) bad_tensor(name, "has no record " + record);
    const size_t bytes = checked_size(record, file_bytes_ * kMaxExpansion);
    const int64_t count = integer(name, id.items[4]);
    if (count > static_cast<int64_t>(bytes / at::elementSize(*type))) bad_tensor(name, "has too short a storage");
    at::Tensor whole = at::empty({static_cast<int64_t>(bytes / at::elementSize(*type))}, at::TensorOptions(*type));
    if (bytes != whole.nbytes()) bad_tensor(name, "has a storage that is not a whole number of elements");
    if (!zip_.read(prefix_ + record, whole.data_ptr(), bytes)) bad_tensor(name, "does not match its checksum");
    return flat = whole;
  }

  std::string path_;
  size_t file_bytes_;
  ZipArchive zip_;
  std::string prefix_;  // the folder of all parts
  Pickle pickle_;
  std::map<std::pair<std::string, at::ScalarType>, at::Tensor> storages_;
};

void strip_prefix(NamedTensors& tensors, const std::string& prefix) {
  const auto starts = [&](const auto& entry) { return entry.first.rfind(prefix, 0) == 0; };
  if (!std::all_of(tensors.begin(), tensors.end(), starts)) return;
  for (auto& entry : tensors) entry.first.erase(0, prefix.size());
}

void check_magic(const std::string& path) {
  const Descriptor file = open_for_reading(path);
  char magic[4] = {};
  read_all_at(file.get(), magic, std::min<size_t>(sizeof magic, std::filesystem::file_size(path)), 0, path);
  const std::string_view start(magic, sizeof magic);
  if (start == "PK\3\4") return;
  if (start.substr(0, 2) == "\x80\x02")
    fail(path,
         " is in the format of PyTorch before 1.6; in Python, save it again: "
         "torch.save(torch.load(p, map_location=\"cpu\"), p)");
  fail(path, " is not a PyTorch file: it does not begin as a zip archive");
}

}  // namespace

bool is_torch_pickle(const std::string& path) {
  char magic[2] = {};
  const Descriptor file = open_for_reading(path);
  read_all_at(file.get(), magic, sizeof magic, 0, path);
  const std::string_view start(magic, sizeof magic);
  return start == "PK" || start == "\x80\x02";  // a zip archive, or the pickle of versions before 1.6
}

NamedTensors read_torch_pickle(const std::string& path) {
  check_magic(path);
  NamedTensors tensors = TorchFile(path).state_dict();
  strip_prefix(tensors, "_orig_mod.");
  strip_prefix(tensors, "module.");
  return tensors;
}

}  // namespace sparsight
