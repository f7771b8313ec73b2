#include "sparsight/data/sets/webdataset.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>

#include "sparsight/core/bytes.h"
#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/log.h"
#include "sparsight/data/known_superclasses.h"
#include "sparsight/data/look_at_all.h"
#include "sparsight/data/sets/data_root.h"
#include "sparsight/data/sets/folder.h"
#include "sparsight/data/shards/index_file.h"
#include "sparsight/data/shards/shard_labels.h"
#include "sparsight/data/shards/shard_names.h"
#include "sparsight/data/shards/shard_set.h"
#include "sparsight/io/atomic_file.h"

namespace sparsight {
namespace {

const std::vector<std::string> kSplits{"train", "validation", "test"};

// The file of the folder or URL; nothing where there is none.
std::optional<Bytes> small_file(const std::string& root, const std::string& name, int64_t max_bytes) {
  const std::string path = root + (root.ends_with('/') ? "" : "/") + name;
  if (is_url(root)) return HttpReader().whole(path, max_bytes);
  return path_exists(path) ? std::optional(read_bytes(path, max_bytes)) : std::nullopt;
}

std::string_view as_text(const Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// The shards that the settings name, in order, without index; none if they name none.
std::vector<ShardIndex> named_shards(const WebDatasetOptions& options) {
  std::vector<ShardIndex> shards;
  const std::string* patterns[] = {&options.train_shards, &options.validation_shards, &options.test_shards};
  std::map<std::string, std::string> split_of;
  for (size_t i = 0; i < kSplits.size(); ++i) {
    if (patterns[i]->empty()) continue;
    for (const std::string& name : expand_shards(*patterns[i], "data." + kSplits[i] + "_shards")) {
      const auto [at, is_new] = split_of.emplace(name, kSplits[i]);
      if (!is_new) fail_usage("data.", kSplits[i], "_shards names ", name, ", as does data.", at->second, "_shards");
      shards.push_back({name, kSplits[i], 0, "", {}});
    }
  }
  if (!shards.empty() && options.train_shards.empty())
    fail_usage("data.train_shards is empty; name the shards to train on, such as train-{000000..000009}.tar");
  return shards;
}

// `named`: which shards are wanted, and for what; none: all, for what the index says.
std::vector<ShardIndex> indexed_shards(const Bytes& text, const std::string& name,
                                       const std::vector<ShardIndex>& named) {
  std::map<std::string, size_t> position;
  for (size_t i = 0; i < named.size(); ++i) position[named[i].shard] = i;
  std::vector<ShardIndex> shards = named;
  read_index_file(as_text(text), name, [&](ShardIndex index) {
    if (named.empty()) {
      if (index.split.empty()) index.split = "train";
      if (std::ranges::find(kSplits, index.split) == kSplits.end())
        fail(name, ": shard ", index.shard, " has split \"", printable(index.split), "\"; it is one of ",
             "train, validation, test");
      shards.push_back(std::move(index));
    } else if (const auto found = position.find(index.shard); found != position.end()) {
      index.split = named[found->second].split;
      shards[found->second] = std::move(index);
    }
  });
  for (const ShardIndex& shard : shards)
    if (shard.images.empty())
      fail(name, " has no shard ", shard.shard, "; correct data.", shard.split,
           "_shards, or remove the file, so that all shards are read for a new one");
  return shards;
}

// Reads the headers of all shards.
void look_into(const std::string& root, std::vector<ShardIndex>& shards, const ReadAhead& ahead) {
  std::vector<ShardFile> files;
  for (const ShardIndex& shard : shards) files.push_back({shard.shard});
  const auto store = open_shards(root, std::move(files), ahead);
  log_info("reading the headers of ", shards.size(), shards.size() == 1 ? " shard" : " shards", " in ",
           printable(root));
  const Looks looks = look_at_all(
      std::ssize(shards),
      [&](int64_t i) {
        ShardIndex& shard = shards[static_cast<size_t>(i)];
        ShardIndex index = index_shard(StoredShard(*store, static_cast<size_t>(i)));
        index.shard = std::move(shard.shard), index.split = std::move(shard.split);
        shard = std::move(index);
      },
      [](int64_t, int64_t) {});
  if (interrupted()) fail("interrupted");
  if (!looks.problems.empty()) fail(looks.problems.begin()->second);
}

void keep_index(const std::string& path, const std::vector<ShardIndex>& shards) {
  AtomicFile file(path);
  file.write(index_file_begin(shards.size()));
  for (const ShardIndex& shard : shards) file.write(index_file_line(shard));
  file.commit();
}

std::vector<ShardIndex> find_images(const std::string& root, const WebDatasetOptions& options, const ReadAhead& ahead) {
  std::vector<ShardIndex> shards = named_shards(options);
  if (!options.index.empty() && path_exists(options.index))
    return indexed_shards(read_bytes(options.index, kMaxManifestBytes), printable(options.index), shards);
  if (options.index.empty())
    if (const auto text = small_file(root, kIndexFile, kMaxManifestBytes))
      return indexed_shards(*text, printable(root) + "/" + kIndexFile, shards);
  if (shards.empty())
    fail_usage(printable(root), " has no ", kIndexFile,
               "; name its shards with data.train_shards, such as train-{000000..000009}.tar");
  look_into(root, shards, ahead);
  if (options.index.empty())
    log_info("set data.index to a file, and what the shards hold is kept there for the next time");
  else
    keep_index(options.index, shards);
  return shards;
}

// Files are there, and as long as their index says. Those of a server show it when they are read.
void check_sizes(const ShardStore& store, const std::vector<ShardIndex>& shards) {
  for (size_t i = 0; i < shards.size(); ++i)
    if (const int64_t bytes = store.size(i); bytes != shards[i].bytes)
      fail(store.name(i), " has ", bytes, " bytes, but its index says ", shards[i].bytes,
           "; the shard is cut off or was replaced, get it again or write its index again");
}

std::string name_of_root(const std::string& root) {
  auto path = std::filesystem::path(root).lexically_normal();
  const std::string name = (path.has_filename() ? path : path.parent_path()).filename().native();
  return name.empty() || name[0] == '.' ? "webdataset" : printable(name);
}

}  // namespace

void WebDatasetOptions::declare(OptionSet& set) {
  set.text("root", &root, "folder or http(s) URL of the shards");
  set.text("train_shards", &train_shards,
           "shards to train on, paths below root: train-{000000..000009}.tar; several patterns are separated by ::; "
           "empty: those that shards.jsonl says");
  set.text("validation_shards", &validation_shards, "the same for validation");
  set.text("test_shards", &test_shards, "the same for testing");
  set.text("index", &index,
           "file with what the shards hold, made in one pass over them where it is missing; empty: shards.jsonl in "
           "root, if it is there");
  set.integer("read_ahead_mb", &read_ahead_mb, {1, 1024}, "megabytes of a shard that one HTTP request asks for");
  set.integer("cache_mb", &cache_mb, {0, 1 << 20},
              "megabytes of memory for what HTTP requests have read; enough for twice loader.shuffle_buffer images");
  declare_channels(set, &channels);
  splits.declare(set);
}

DataSplits make_webdataset(const WebDatasetOptions& options, const DataContext& context) {
  const std::string root = is_url(options.root) ? options.root : data_root(options.root, "");
  const ReadAhead ahead{options.read_ahead_mb << 20, options.cache_mb << 20};
  const std::vector<ShardIndex> shards = find_images(root, options, ahead);
  std::vector<std::string> names;
  if (const auto text = small_file(root, "classes.txt", kMaxNamesBytes))
    names = parse_class_names(as_text(*text), printable(root) + "/classes.txt");
  const ShardLabels labels = resolve_labels(shards, names);
  DataInfo info;
  info.name = name_of_root(root);
  info.classes = labels.classes;
  info.domains = {info.name};
  info.channels = checked_channels(options.channels);
  add_known_superclasses(info);
  std::vector<ShardFile> files;
  for (const ShardIndex& shard : shards) files.push_back({shard.shard, shard.bytes});
  const auto store = open_shards(root, std::move(files), ahead);
  if (!is_url(root)) check_sizes(*store, shards);
  std::map<std::string, std::shared_ptr<ShardSet>> parts;
  for (size_t i = 0; i < shards.size(); ++i) {
    auto& part = parts[shards[i].split];
    if (!part) part = std::make_shared<ShardSet>(info, store);
    part->add(i, shards[i], labels.labels[i]);
  }
  if (!parts["train"]) fail(printable(root), ": no shard has split \"train\"");
  return make_splits({parts["train"], parts["validation"], parts["test"]}, options.splits, context);
}

}  // namespace sparsight
