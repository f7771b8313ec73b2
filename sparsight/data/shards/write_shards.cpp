#include "sparsight/data/shards/write_shards.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iomanip>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>

#include "sparsight/core/checksum.h"
#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/log.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/shuffle.h"
#include "sparsight/data/hash.h"
#include "sparsight/data/readers/folder.h"
#include "sparsight/data/readers/image.h"
#include "sparsight/data/shards/index_file.h"
#include "sparsight/data/shards/tar_header.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/file_lock.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

struct PlannedShard {
  std::string name, split;
  const DataSet* data = nullptr;
  int64_t first = 0;            // number of its first image in the split
  std::vector<int64_t> images;  // positions in the data
};

std::string padded_number(int64_t number, int digits) {
  std::ostringstream text;
  text << std::setw(digits) << std::setfill('0') << number;
  return text.str();
}

int64_t bytes_of_file(const std::string& path) {
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  if (error) fail("cannot read ", printable(path), ": ", error.message());
  return static_cast<int64_t>(bytes);
}

// What an image takes in a shard: two headers, its file and its label.
int64_t bytes_in_shard(const std::string& path) {
  const int64_t bytes = bytes_of_file(path);
  return 3 * static_cast<int64_t>(kTarBlock) + bytes + tar_padding(bytes);
}

std::vector<int64_t> image_order(const DataSet& data, const std::string& split, const ShardOptions& options) {
  std::vector<int64_t> order(static_cast<size_t>(data.size()));
  std::iota(order.begin(), order.end(), 0);
  RandomStream random(options.seed, cat("shards ", split));
  if (options.shuffled) shuffle(order, random);
  return order;
}

void plan_split(const std::string& split, const DataSet& data, const ShardOptions& options,
                std::vector<PlannedShard>& plan) {
  int64_t number = 0, bytes = 0, shards = 0;
  for (const int64_t i : image_order(data, split, options)) {
    const std::string path = data.file(i);
    if (path.empty())
      fail_usage(data.info().name, " has images that are not files; write them with `sparsight data make` first");
    const int64_t more = options.max_bytes > 0 ? bytes_in_shard(path) : 0;
    bytes += more;
    if (shards == 0 || (options.max_images > 0 && std::ssize(plan.back().images) == options.max_images) ||
        (options.max_bytes > 0 && bytes > options.max_bytes)) {
      plan.push_back({cat(split, "-", padded_number(shards++, 6), ".tar"), split, &data, number, {}});
      bytes = more;
    }
    plan.back().images.push_back(i);
    ++number;
  }
}

// A tar archive that becomes a file, or only its checksum.
class TarWriter {
 public:
  explicit TarWriter(const std::string& path) {
    if (!path.empty()) file_.emplace(path);
  }

  // Where the content is.
  int64_t add(const std::string& name, const void* data, size_t bytes) {
    static constexpr char kZeros[kTarBlock] = {};
    const TarHeader header = tar_file_header(name, static_cast<int64_t>(bytes));
    put(&header, sizeof header);
    const int64_t offset = at_;
    put(data, bytes);
    put(kZeros, static_cast<size_t>(tar_padding(static_cast<int64_t>(bytes))));
    return offset;
  }

  // Two blocks of zeros, and as many as make a record of 20, which is how tar(1) ends its archives.
  void finish(ShardIndex& index) {
    constexpr int64_t kRecord = 20 * static_cast<int64_t>(kTarBlock);
    const int64_t end = (at_ + 2 * static_cast<int64_t>(kTarBlock) + kRecord - 1) / kRecord * kRecord;
    const std::string zeros(static_cast<size_t>(end - at_), '\0');
    put(zeros.data(), zeros.size());
    if (file_) file_->commit();
    index.bytes = at_;
    index.sha256 = hash_.hex();
  }

 private:
  void put(const void* data, size_t bytes) {
    hash_.add(data, bytes);
    if (file_) file_->write(data, bytes);
    at_ += static_cast<int64_t>(bytes);
  }

  std::optional<AtomicFile> file_;
  Hasher hash_;
  int64_t at_ = 0;
};

std::string lower_ending(const std::string& path) {
  std::string ending = fs::path(path).extension().native();
  for (char& c : ending)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return ending;
}

// `path`: "" if the shard is there already.
ShardIndex write_shard(const PlannedShard& plan, const std::string& path, const std::function<void()>& count_image) {
  TarWriter tar(path);
  ShardIndex index{plan.name, plan.split, 0, "", {}};
  for (size_t i = 0; i < plan.images.size(); ++i) {
    if (interrupted()) fail("interrupted; whole shards are kept, and the same command goes on");
    const int64_t position = plan.images[i];
    const std::string source = plan.data->file(position);
    if (!has_image_ending(source))
      fail(printable(source), " does not end as an image does; rename it, since readers of shards go by .jpg or .png");
    plan.data->check(position);
    const Bytes bytes = read_bytes(source, kMaxImageFileBytes);
    const std::string key = padded_number(plan.first + static_cast<int64_t>(i), 8);
    ShardImage image{key + lower_ending(source), 0, std::ssize(bytes), std::to_string(plan.data->label(position)),
                     compute_checksum({reinterpret_cast<const char*>(bytes.data()), bytes.size()})};
    image.offset = tar.add(image.name, bytes.data(), bytes.size());
    tar.add(key + ".cls", image.label.data(), image.label.size());
    index.images.push_back(std::move(image));
    count_image();
  }
  tar.finish(index);
  return index;
}

void check_folder(const std::string& folder, const std::vector<PlannedShard>& plan) {
  std::set<std::string> planned;
  for (const PlannedShard& shard : plan) planned.insert(shard.name);
  for (const std::string& name : list_folder(folder))
    if (name.ends_with(".tar") && !planned.contains(name))
      fail(printable(folder + "/" + name), " is not one of the ", plan.size(),
           " shards that this command writes; choose an empty folder");
}

// Returns the text's line of SHA256SUMS.
std::string write_list(const std::string& folder, const std::string& name, const std::string& text) {
  const std::string path = folder + "/" + name;
  if (path_exists(path) && read_file(path, kMaxManifestBytes) != text)
    fail(printable(path), " is there with other content; choose an empty folder");
  write_file_atomically(path, text);
  return cat(hash_bytes(ByteView(reinterpret_cast<const uint8_t*>(text.data()), text.size())), "  ", name, "\n");
}

void write_lists(const std::string& folder, const std::vector<std::string>& classes,
                 const std::vector<ShardIndex>& shards) {
  std::string sums, names, index = index_file_begin(shards.size());
  for (const ShardIndex& shard : shards) {
    sums += cat(shard.sha256, "  ", shard.shard, "\n");
    index += index_file_line(shard);
  }
  for (const std::string& name : classes) names += name + "\n";
  sums += write_list(folder, "classes.txt", names);
  sums += write_list(folder, kIndexFile, index);
  write_list(folder, "SHA256SUMS", sums);
}

}  // namespace

void set_shard_size(ShardOptions& options, const std::string& size) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), number);
  const std::string unit(end, size.data() + size.size());
  const int64_t bytes = unit == "MB" ? 1'000'000 : unit == "GB" ? 1'000'000'000 : 0;
  if (error != std::errc() || number < 1 || number > 1'000'000'000 || (!unit.empty() && bytes == 0))
    fail_usage("--shard-size must be a number of images (1000) or a size (500MB, 2GB), got \"", printable(size), "\"");
  options.max_images = unit.empty() ? number : 0;
  options.max_bytes = number * bytes;
}

WrittenShards write_shards(const std::vector<std::pair<std::string, DataSetPtr>>& splits, const ShardOptions& options,
                           const std::function<void(int64_t, int64_t)>& progress) {
  SPARSIGHT_CHECK(!splits.empty());
  const DataInfo& info = splits.front().second->info();
  need_single_labels(info, "a shard");
  if (info.domains.size() > 1)
    log_warning("shards do not keep the domains of ", info.name, " (", join(info.domains), "), only its classes");
  std::vector<PlannedShard> plan;
  int64_t total = 0, done = 0;
  for (const auto& [split, data] : splits) {
    plan_split(split, *data, options, plan);
    total += data->size();
  }
  create_folder(options.folder);
  const auto lock = FileLock::try_take(options.folder + "/.sharding");
  if (!lock) fail("another process is writing shards to ", printable(options.folder), "; wait for it");
  check_folder(options.folder, plan);
  WrittenShards written{total, std::ssize(plan), 0};
  std::vector<ShardIndex> shards;
  for (const PlannedShard& shard : plan) {
    const std::string path = options.folder + "/" + shard.name;
    const bool is_there = path_exists(path);
    shards.push_back(write_shard(shard, is_there ? "" : path, [&] { progress(++done, total); }));
    if (is_there && hash_file(path) != shards.back().sha256)
      fail(printable(path), " is there with other content; choose an empty folder, or remove it");
    written.kept += is_there ? 1 : 0;
  }
  write_lists(options.folder, info.classes, shards);
  return written;
}

}  // namespace sparsight
