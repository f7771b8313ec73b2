// The input is a shard; or after a first byte of i, p or c an index of shards, a pattern or the names of classes. Sums
// of headers are put right, as no fuzzer finds them.
#include <algorithm>
#include <cstring>

#include "sparsight/data/shards/index_file.h"
#include "sparsight/data/shards/shard_labels.h"
#include "sparsight/data/shards/shard_names.h"
#include "sparsight/data/shards/tar_header.h"
#include "tests/fuzz/fuzz.h"

using namespace sparsight;

namespace {

class FuzzedShard : public engine::ByteSource {
 public:
  FuzzedShard(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  const std::string& name() const override { return name_; }
  int64_t bytes() const override { return static_cast<int64_t>(size_); }
  void read(int64_t offset, void* to, int64_t count) const override {
    if (offset < 0 || count < 0 || offset > bytes() - count) std::abort();
    if (count == 0) return;
    std::memcpy(to, data_ + offset, static_cast<size_t>(count));
    if (count == static_cast<int64_t>(kTarBlock)) correct(static_cast<TarHeader*>(to));
  }

 private:
  static void correct(TarHeader* header) {
    if (is_tar_end(*header)) return;
    std::fill_n(header->checksum, sizeof header->checksum, ' ');
    const auto* bytes = reinterpret_cast<const uint8_t*>(header);
    unsigned sum = 0;
    for (size_t i = 0; i < kTarBlock; ++i) sum += bytes[i];
    std::snprintf(header->checksum, sizeof header->checksum, "%06o", sum);
  }

  const uint8_t* data_;
  size_t size_;
  std::string name_ = "a.tar";
};

// Long lists take long, and are not what is searched for.
bool has_digits(const std::string& text, size_t most) {
  size_t digits = 0;
  for (const char c : text)
    if ((digits = c >= '0' && c <= '9' ? digits + 1 : 0) > most) return true;
  return false;
}

// What has been read fits into its shard, and comes back from an index as it was.
void check(const ShardIndex& index) {
  bool short_labels = true;
  for (const ShardImage& image : index.images) {
    if (image.offset < 0 || image.bytes < 0 || image.bytes > index.bytes - image.offset) std::abort();
    short_labels = short_labels && !has_digits(image.label, 3);
  }
  if (short_labels) resolve_labels({index}, {});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return try_reader([&] {
    const std::string rest(as_text(data, size).substr(size > 0 ? 1 : 0));
    switch (size > 0 ? data[0] : 0) {
      case 'i':
        read_index_file(rest, "shards.jsonl", check);
        break;
      case 'p':
        if (!has_digits(rest, 2)) expand_shards(rest, "data.train_shards");
        break;
      case 'c':
        parse_class_names(rest, "classes.txt");
        break;
      default:
        ShardIndex index = index_shard(FuzzedShard(data, size));
        check(index);
        index.shard = "a.tar";
        const std::string text = index_file_begin(1) + index_file_line(index);
        read_index_file(text, "shards.jsonl", check);
    }
  });
}
