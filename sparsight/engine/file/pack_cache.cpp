#include "sparsight/engine/file/pack_cache.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "sparsight/core/checksum.h"
#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/engine/file/frozen_header.h"
#include "sparsight/engine/file/packing_checksum.h"
#include "sparsight/engine/file/whole_file.h"
#include "sparsight/kernels/isa/isa.h"
#include "sparsight/kernels/memory/arena.h"

namespace sparsight::engine {
namespace {

constexpr char kPackedMagic[] = "\x89SPACKED";
constexpr uint32_t kPackedVersion = 1;
constexpr int64_t kMaxArrays = int64_t{1} << 16;

// What must be the same for the file to be used. Texts end with zeros.
struct PackIdentity {
  char magic[8] = {};
  uint32_t version = kPackedVersion, alignment = kTensorAlignment;
  char model[16] = {};    // checksum of its header, which has those of its tensors
  char packing[16] = {};  // packing_checksum()
  char level[16] = {}, arithmetic[16] = {};
};

// Then come the entries, the checksum of all so far, and the arrays.
struct PackedStart {
  PackIdentity identity = {};
  int64_t file_bytes = 0, arrays = 0;
};

template <size_t kSize>
void copy_text(std::string_view text, char (&to)[kSize]) {
  std::copy_n(text.data(), std::min(text.size(), kSize), to);
}

template <class T>
std::string raw_bytes(const T* values, size_t count) {
  return {reinterpret_cast<const char*>(values), count * sizeof(T)};
}

int64_t head_bytes(int64_t arrays, size_t entry) {
  return static_cast<int64_t>(sizeof(PackedStart) + kChecksumDigits) + arrays * static_cast<int64_t>(entry);
}

}  // namespace

PackCache::PackCache(const std::string& model, const FrozenHeader& header) : model_(model) {
  const std::string level = active_isa();
  PackIdentity identity;
  copy_text({kPackedMagic, sizeof identity.magic}, identity.magic);
  copy_text(header.checksum, identity.model);
  copy_text(packing_checksum(), identity.packing);
  copy_text(level, identity.level);
  copy_text(consistent_arithmetic() ? "consistent" : "fast", identity.arithmetic);
  identity_ = raw_bytes(&identity, 1);
  path_ = model + "." + level + (consistent_arithmetic() ? ".consistent.packed" : ".packed");
  mapped_ = MappedFile::open(path_, model);
  if (mapped_) table_ = read_table();
}

// Empty for what is not the file wanted.
std::vector<PackCache::Entry> PackCache::read_table() const {
  const int64_t size = mapped_->bytes();
  PackedStart start;
  if (size < head_bytes(0, 0) || !mapped_->read(0, &start, sizeof start)) return {};
  if (raw_bytes(&start.identity, 1) != identity_ || start.file_bytes != size || start.arrays < 0 ||
      start.arrays > kMaxArrays || head_bytes(start.arrays, sizeof(Entry)) > size)
    return {};
  std::string head(static_cast<size_t>(head_bytes(start.arrays, sizeof(Entry))), '\0');
  if (!mapped_->read(0, head.data(), static_cast<int64_t>(head.size()))) return {};
  const size_t covered = head.size() - kChecksumDigits;
  if (!has_checksum({head.data(), covered}, {head.data() + covered, kChecksumDigits})) return {};
  std::vector<Entry> table(static_cast<size_t>(start.arrays));
  if (!table.empty()) std::memcpy(table.data(), head.data() + sizeof start, table.size() * sizeof(Entry));
  const auto wrong = [&](const Entry& entry) {
    return entry.offset < static_cast<int64_t>(head.size()) || entry.offset % kTensorAlignment != 0 ||
           entry.array.bytes < 1 || entry.array.bytes > size || entry.offset > size - entry.array.bytes;
  };
  return std::ranges::any_of(table, wrong) ? std::vector<Entry>() : table;
}

const PackCache::Entry* PackCache::find(const PackedArray& array) const {
  const auto found = std::ranges::find(table_, array, &Entry::array);
  if (found == table_.end() || !mapped_->load(found->offset, array.bytes)) return nullptr;
  const char* const data = mapped_->data() + found->offset;
  const bool right = has_checksum({data, static_cast<size_t>(array.bytes)}, {found->checksum, sizeof found->checksum});
  return right ? &*found : nullptr;
}

std::shared_ptr<const void> PackCache::get(const PackedArray& array, Pack pack) {
  if (const Entry* const entry = find(array)) {
    const char* const data = mapped_->data() + entry->offset;
    used_.push_back({array, data, nullptr, std::move(pack), {entry->checksum, sizeof entry->checksum}});
    return {shared_from_this(), data};
  }
  const std::shared_ptr<const void> memory = get_packed(nullptr, array, std::move(pack));
  ++packed_;
  used_.push_back({array, static_cast<const char*>(memory.get()), memory, nullptr});
  return memory;
}

void PackCache::finish() {
  try {
    wrote_ = packed_ > 0 && write();
  } catch (const Error& error) {
    failure_ = error.what();
  }
  std::erase_if(used_, [](const Used& used) { return used.memory != nullptr; });
  if (used_.empty()) mapped_.reset();
  table_ = {};
}

void PackCache::check_unchanged() const {
  if (mapped_ && !mapped_->is_unchanged()) fail(printable(path_), " was changed while it was read");
}

bool PackCache::write() const {
  if (std::ssize(used_) > kMaxArrays)
    fail("the model has ", used_.size(), " layers, at most ", kMaxArrays, " are kept");
  if (is_of_another_user(path_, model_))
    fail(printable(path_), " is another user's, who may not write the model; remove it");
  std::vector<Entry> table;
  int64_t end = head_bytes(std::ssize(used_), sizeof(Entry));
  for (const Used& used : used_) {
    Entry& entry = table.emplace_back(Entry{.array = used.array, .offset = aligned(end, kTensorAlignment)});
    copy_text(used.memory ? compute_checksum({used.data, static_cast<size_t>(used.array.bytes)}) : used.checksum,
              entry.checksum);
    end = entry.offset + used.array.bytes;
  }
  PackedStart start{.file_bytes = end, .arrays = std::ssize(table)};
  std::memcpy(&start.identity, identity_.data(), sizeof start.identity);
  std::string head = raw_bytes(&start, 1) + raw_bytes(table.data(), table.size());
  head += compute_checksum(head);
  return write_whole_file(path_, model_, [&](WriteBytes write) {
    write(head.data(), head.size());
    auto at = static_cast<int64_t>(head.size());
    for (size_t i = 0; i < table.size(); ++i) {
      const std::string zeros(static_cast<size_t>(table[i].offset - at), '\0');
      write(zeros.data(), zeros.size());
      write(used_[i].data, static_cast<size_t>(table[i].array.bytes));
      at = table[i].offset + table[i].array.bytes;
    }
    check_unchanged();  // else what was written of it may not have its checksum
  });
}

void PackCache::restore() {
  if (!mapped_ || restored_ || mapped_->is_unchanged()) return;
  const std::scoped_lock lock(mutex_);
  if (restored_) return;
  mapped_->replace([&](char* memory) {
    for (const Used& used : used_) used.pack(memory + (used.data - mapped_->data()));
  });
  restored_ = true;
}

std::shared_ptr<const void> get_packed(PackCache* cache, const PackedArray& array, PackCache::Pack pack) {
  if (cache) return cache->get(array, std::move(pack));
  std::shared_ptr<const void> memory = cpu::shared_array(array.bytes);
  pack(const_cast<void*>(memory.get()));
  return memory;
}

}  // namespace sparsight::engine
