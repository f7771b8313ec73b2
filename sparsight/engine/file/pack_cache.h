// Packed weights of a frozen model in a file beside it: the next process maps them instead of packing the model's
// matrices again, and processes share their pages. Layout and what is checked: docs/file_formats.md, "Packed weights".
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sparsight/engine/file/mapped_file.h"

namespace sparsight::engine {

struct FrozenHeader;

// The packed numbers of a layer, and what they follow from beside the model, the level and the build.
struct PackedArray {
  int64_t tensor = 0;  // the place in the model of the first tensor that they are made of
  int64_t bytes = 0;
  int64_t type = 0;               // WeightType
  int64_t experts = 0;            // 0: a linear layer
  int64_t rows = 0, columns = 0;  // of the first matrix
  int64_t together = 0;           // rows of a linear layer that are stored together
  bool operator==(const PackedArray&) const = default;
};

class PackCache : public std::enable_shared_from_this<PackCache> {
 public:
  using Pack = std::function<void(void* memory)>;

  // model: the path of the frozen model that has this header. The file is "MODEL.LEVEL.packed"; it is used if it is of
  // this model, the active level and a build that packs in the same way.
  PackCache(const std::string& model, const FrozenHeader& header);

  // The numbers, aligned to 64 bytes: those of the file, or else what pack() makes in new memory. restore() may call it
  // again.
  std::shared_ptr<const void> get(const PackedArray& array, Pack pack);
  // After the last get(): writes the file if it lacked anything.
  void finish();
  // Before a run, from any thread: if the file was changed since it was opened, packs what was taken from it.
  void restore();

  bool maps() const { return mapped_ != nullptr; }         // something was taken from the file
  int64_t packed() const { return packed_; }               // how often get() called pack()
  bool wrote() const { return wrote_; }                    // the file is new
  const std::string& failure() const { return failure_; }  // why it was not written, or ""

 private:
  struct Entry {
    PackedArray array;
    int64_t offset = 0;  // in the file
    char checksum[16] = {};
  };
  struct Used {
    PackedArray array;
    const char* data = nullptr;
    std::shared_ptr<const void> memory;  // null where the file has it
    Pack pack;
    std::string checksum = {};  // of what the file has
  };

  std::vector<Entry> read_table() const;
  const Entry* find(const PackedArray& array) const;  // null where the file does not have it, whole and right
  void check_unchanged() const;
  bool write() const;

  std::string model_, path_, identity_;
  std::unique_ptr<MappedFile> mapped_;
  std::vector<Entry> table_;
  std::vector<Used> used_;
  int64_t packed_ = 0;
  bool wrote_ = false;
  std::string failure_;
  std::mutex mutex_;
  std::atomic<bool> restored_ = false;
};

// get() of the cache, or what pack() makes where there is none.
std::shared_ptr<const void> get_packed(PackCache* cache, const PackedArray& array, PackCache::Pack pack);

}  // namespace sparsight::engine
