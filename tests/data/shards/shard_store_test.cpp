#include "sparsight/data/shards/shard_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "sparsight/core/error.h"
#include "sparsight/core/random.h"
#include "sparsight/data/sampler.h"
#include "tests/data/readers/fixtures.h"
#include "tests/support/http_server.h"
#include "tests/support/program.h"
#include "tests/support/warnings.h"

namespace sparsight::shard_store_test {

using testing::collect_warnings;
using testing::complaint;
using testing::HttpServer;
using testing::says;
using testing::TemporaryFolder;

constexpr int64_t kShards = 10, kImages = 100, kBytes = 1000;  // of a shard, of an image

// Ten shards of a hundred images of a thousand bytes, on a server and in memory.
class ShardStores : public ::testing::Test {
 protected:
  ShardStores() {
    setenv("no_proxy", "127.0.0.1", 1);
    for (int64_t s = 0; s < kShards; ++s) {
      std::string text;
      RandomStream random(static_cast<uint64_t>(s), "bytes");
      while (std::ssize(text) < kImages * kBytes) text += static_cast<char>(random.below(256));
      server_.answer("/" + file(s), {{text}});
      files_.push_back({file(s), std::ssize(text)});
      contents_.push_back(std::move(text));
    }
  }

  static std::string file(int64_t shard) { return cat(shard, ".tar"); }

  void expect_image(const ShardStore& store, int64_t image) {
    std::string bytes(kBytes, '\0');
    const auto shard = static_cast<size_t>(image / kImages);
    store.read(shard, image % kImages * kBytes, bytes.data(), bytes.size());
    EXPECT_EQ(bytes, contents_[shard].substr(static_cast<size_t>(image % kImages * kBytes), kBytes));
  }

  std::shared_ptr<const ShardStore> open(const ReadAhead& ahead) {
    HttpReadOptions options;
    options.first_pause = 0.01;
    return open_shards(server_.address(""), files_, ahead, options);
  }

  HttpServer server_;
  std::vector<ShardFile> files_;
  std::vector<std::string> contents_;
};

class ImagesInShards : public DataSet {
 public:
  const DataInfo& info() const override { return info_; }
  int64_t size() const override { return kShards * kImages; }
  Sample get(int64_t) const override { return {}; }
  int64_t label(int64_t) const override { return 0; }
  int64_t shard(int64_t index) const override { return index / kImages; }

 private:
  DataInfo info_;
};

TEST_F(ShardStores, AnEpochTakesARequestPerBlock) {
  const auto store = open({.block = 10 * kBytes, .memory = 2 * 150 * kBytes});
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    const size_t before = server_.requests().size();
    for (const int64_t image : epoch_order("shards", ImagesInShards(), {}, 1, epoch, 0, 150))
      expect_image(*store, image);
    EXPECT_LE(server_.requests().size() - before, 100u);  // a block has ten images
    EXPECT_GE(server_.requests().size() - before, 70u);   // memory does not hold the epoch before
  }
}

TEST_F(ShardStores, WhereBlocksDoNotPayImagesAreReadOneByOne) {
  const auto store = open({.block = 10 * kBytes, .memory = 3 * 10 * kBytes});
  RandomStream random(1, "images");
  const std::string warnings = collect_warnings([&] {
    for (int i = 0; i < 60; ++i) expect_image(*store, random.below(kShards * kImages));
  });
  EXPECT_TRUE(says(warnings, "raise data.cache_mb"));
  EXPECT_EQ(std::ranges::count(warnings, '\n'), 1);
  const std::vector<std::string> requests = server_.requests();
  EXPECT_EQ(requests.size(), 60u);
  const auto bytes = [](const std::string& request) {  // "/3.tar 10000-19999"
    const size_t blank = request.find(' '), dash = request.find('-');
    return std::stol(request.substr(dash + 1)) + 1 - std::stol(request.substr(blank + 1, dash - blank - 1));
  };
  EXPECT_EQ(bytes(requests.front()), 10 * kBytes);
  EXPECT_EQ(bytes(requests.back()), kBytes);
}

TEST_F(ShardStores, ReadFilesOfAFolder) {
  const TemporaryFolder folder;
  std::vector<ShardFile> files;
  for (int i = 0; i < 100; ++i) files.push_back({cat("d/", i, ".tar"), 3});  // more than stay open
  for (const ShardFile& file : files) folder.write(file.name, "abc");
  const auto store = open_shards(folder.path(), files);
  for (int round = 0; round < 2; ++round)
    for (size_t i = 0; i < files.size(); ++i) {
      char letters[3] = "";
      store->read(i, 1, letters, 2);
      EXPECT_EQ(std::string(letters), "bc");
      EXPECT_EQ(store->size(i), 3);
    }
  char letter;
  EXPECT_TRUE(says(complaint([&] { store->read(5, 3, &letter, 1); }), "d/5.tar"));
  EXPECT_TRUE(says(complaint([&] { open_shards(folder.path(), {{"none.tar"}})->size(0); }), "none.tar: No such file"));
}

}  // namespace sparsight::shard_store_test
