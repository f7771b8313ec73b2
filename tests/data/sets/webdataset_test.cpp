// Images in tar shards: as files, on a web server, and shards that are not what they should be.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "sparsight/data/loader.h"
#include "sparsight/data/register_data.h"
#include "sparsight/data/shards/index_file.h"
#include "sparsight/data/shards/write_shards.h"
#include "sparsight/data/verify.h"
#include "tests/data/sets/set_files.h"
#include "tests/data/shards/tar_text.h"
#include "tests/support/http_server.h"

namespace sparsight::webdataset_test {

using testing::complaint;
using testing::grey_png;
using testing::HttpServer;
using testing::kTarEnd;
using testing::says;
using testing::tar_entry;
using testing::TemporaryFolder;

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

DataSplits make(const std::string& name, const Json& settings) {
  return data_sets().make(name, settings, "data", DataContext{1});
}

std::string problem(const std::string& name, const Json& settings) {
  const std::string message = complaint([&] { make(name, settings); });
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

// A folder of 60 images, 20 of each class, of different levels, and its shards of 7 images each.
class WebDataset : public ::testing::Test {
 protected:
  WebDataset() {
    setenv("no_proxy", "127.0.0.1", 1);
    for (int i = 0; i < 60; ++i)
      files_.write(cat(i % 5 == 0 ? "val/" : "train/",
                       i % 3 == 0   ? "ant"
                       : i % 3 == 1 ? "bee"
                                    : "cat",
                       "/", i, ".png"),
                   grey_png(i));
    images_ = make("folder", {{"root", files_.path()}, {"channels", 1}});
    ShardOptions options;
    options.folder = shards_.path(), options.max_images = 7;
    written_ = write_shards({{"train", images_.train}, {"validation", images_.validation}}, options, [](auto, auto) {});
  }

  Json settings(const Json& more = Json::object()) const {
    Json all{{"root", shards_.path()}, {"channels", 1}};
    all.update(more);
    return all;
  }

  void serve() {
    for (const auto& entry : std::filesystem::directory_iterator(shards_.path()))
      server_.answer("/" + entry.path().filename().native(), {{content(entry.path().native())}});
  }

  TemporaryFolder files_, shards_;
  DataSplits images_;
  WrittenShards written_;
  HttpServer server_;
};

// Levels are different, so that they name the image.
std::map<int, int64_t> labels_by_level(const DataSet& data) {
  std::map<int, int64_t> labels;
  for (int64_t i = 0; i < data.size(); ++i) {
    const Sample sample = data.get(i);
    EXPECT_EQ(sample.image.sizes(), (at::IntArrayRef{1, 4, 5}));
    EXPECT_EQ(sample.label, data.label(i));
    labels[sample.image[0][0][0].item<int>()] = sample.label;
  }
  EXPECT_EQ(std::ssize(labels), data.size());
  return labels;
}

TEST_F(WebDataset, HasTheImagesAndLabelsOfTheFolder) {
  EXPECT_EQ(written_.images, 60);
  EXPECT_EQ(written_.shards, 7 + 2);  // 48 and 12 images
  const DataSplits set = make("webdataset", settings());
  EXPECT_EQ(set.train->info().classes, images_.train->info().classes);
  EXPECT_EQ(labels_by_level(*set.train), labels_by_level(*images_.train));
  EXPECT_EQ(labels_by_level(*set.validation), labels_by_level(*images_.validation));
  EXPECT_EQ(set.train->get(7).id, "train-000001.tar/00000007.png");
  EXPECT_EQ(set.train->shard(6), 0);
  EXPECT_EQ(set.train->shard(7), 1);
}

TEST_F(WebDataset, NeedsNoIndexAndKeepsOneOnDemand) {
  std::filesystem::remove(shards_.path(kIndexFile));
  EXPECT_TRUE(says(problem("webdataset", settings()), "has no shards.jsonl; name its shards with data.train_shards"));
  const Json named{{"train_shards", "train-{000000..000006}.tar"},
                   {"test_shards", "validation-{000000..000001}.tar"},
                   {"validation", 0},
                   {"index", files_.path("index.jsonl")}};
  const DataSplits set = make("webdataset", settings(named));
  EXPECT_EQ(labels_by_level(*set.train), labels_by_level(*images_.train));
  EXPECT_EQ(labels_by_level(*set.test), labels_by_level(*images_.validation));
  // Then the index alone says what is where.
  const std::string text = content(files_.path("index.jsonl"));
  EXPECT_NE(text.find("\"shard\":\"train-000006.tar\""), std::string::npos);
  EXPECT_EQ(labels_by_level(*make("webdataset", settings(named)).train), labels_by_level(*images_.train));
  Json more = named;
  more["train_shards"] = "train-{000000..000007}.tar";
  EXPECT_TRUE(says(problem("webdataset", settings(more)), "has no shard train-000007.tar"));
}

std::vector<int64_t> seen_by_loader(const DataSetPtr& data, LoaderOptions options) {
  options.batch = 5, options.sampling = "shards", options.shuffle_buffer = 15;
  Loader loader(data, TransformPipeline(), BatchTransform(), options, 3);
  std::vector<int64_t> levels;
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    loader.start(epoch);
    while (const auto batch = loader.next())
      for (int64_t i = 0; i < batch->images.size(0); ++i)
        levels.push_back(std::lround(batch->images[i][0][0][0].item<float>() * 255));
  }
  return levels;
}

TEST_F(WebDataset, HasOneOrderForAnyWorkersPrefetchAndPlace) {
  serve();
  const DataSplits local = make("webdataset", settings()),
                   remote = make("webdataset", settings({{"root", server_.address("")}}));
  LoaderOptions options;
  options.workers = 0;
  const std::vector<int64_t> expected = seen_by_loader(local.train, options);
  EXPECT_EQ(expected.size(), 2 * 45u);
  for (const int64_t workers : {1, 4})
    for (const int64_t prefetch : {1, 8}) {
      options.workers = workers, options.prefetch = prefetch;
      EXPECT_EQ(seen_by_loader(local.train, options), expected);
      EXPECT_EQ(seen_by_loader(remote.train, options), expected);
    }
}

TEST_F(WebDataset, IsReadFromAServerInFewRequests) {
  serve();
  const DataSplits set = make("webdataset", settings({{"root", server_.address("")}}));
  EXPECT_EQ(server_.requests().size(), 2u);  // index and classes
  EXPECT_EQ(labels_by_level(*set.train), labels_by_level(*images_.train));
  EXPECT_EQ(server_.requests().size(), 2u + 7u);  // then each shard once, for 48 images
  EXPECT_EQ(labels_by_level(*set.validation), labels_by_level(*images_.validation));
  EXPECT_EQ(labels_by_level(*set.train), labels_by_level(*images_.train));
  EXPECT_EQ(server_.requests().size(), 2u + 9u);
  EXPECT_EQ(verify_set({"webdataset", settings({{"root", server_.address("")}})}, [](auto, auto) {}).images, 60);
}

TEST_F(WebDataset, GoesOnWhereAConnectionBroke) {
  serve();
  const std::string shard = content(shards_.path("train-000000.tar"));
  server_.answer("/train-000000.tar", {{shard, 200, 3000}, {"busy", 503}, {shard}});
  const DataSplits set = make("webdataset", settings({{"root", server_.address("")}}));
  EXPECT_EQ(labels_by_level(*set.train), labels_by_level(*images_.train));
  const std::vector<std::string> requests = server_.requests();
  EXPECT_EQ(std::ranges::count(requests, cat("/train-000000.tar 3000-", shard.size() - 1)), 2);
}

TEST_F(WebDataset, RefusesAServersOtherBytes) {
  serve();
  const DataSplits set = make("webdataset", settings({{"root", server_.address("")}}));
  const std::string shard = content(shards_.path("train-000000.tar")), name = server_.address("/train-000000.tar");
  std::string other = shard;
  other[512 + 30] ^= 1;  // in the first image
  const auto answer = [&](const std::vector<testing::HttpResponse>& responses) {
    server_.answer("/train-000000.tar", responses);
    return complaint([&] { set.train->get(0); });
  };
  EXPECT_TRUE(says(answer({{"none", 404}}), "of " + name + ": HTTP status 404"));
  EXPECT_TRUE(says(answer({{shard, 200, -1, false}}), name + ": it does not answer requests for parts of a file"));
  EXPECT_TRUE(says(answer({{shard + "more"}}), name + " has "));
  EXPECT_TRUE(says(answer({{other}}), name + "/00000000.png does not have the checksum that its index says"));
  // What was damaged once on its way is read again; the first answer is in memory by now.
  EXPECT_EQ(answer({{shard}}), "");
}

TEST_F(WebDataset, RefusesShardsThatAreNotThoseOfTheIndex) {
  const std::string path = shards_.path("train-000003.tar"), shard = content(path);
  std::filesystem::resize_file(path, shard.size() - 512);
  EXPECT_TRUE(says(problem("webdataset", settings()), path + " has 19968 bytes, but its index says 20480"));
  std::filesystem::remove(path);
  EXPECT_TRUE(says(problem("webdataset", settings()), path + ": No such file"));
  std::string other = shard;
  other[512 + 30] ^= 1;
  shards_.write("train-000003.tar", other);
  const DataSplits set = make("webdataset", settings());
  EXPECT_TRUE(says(complaint([&] { set.train->get(21); }), path + "/00000021.png does not have the checksum"));
  EXPECT_NO_THROW(set.train->get(22));
  const Verification found = verify_set({"webdataset", settings()}, [](auto, auto) {});
  ASSERT_EQ(found.problems.size(), 2u);  // the shard's own checksum, and that of the image
  EXPECT_TRUE(says(found.problems[0], "train-000003.tar has sha256"));
  EXPECT_TRUE(says(found.problems[1], "00000021.png does not have the checksum"));
  EXPECT_EQ(found.images, 59);
}

TEST_F(WebDataset, WritesTheSameBytesAgainAndKeepsWhatIsThere) {
  const std::string path = shards_.path("train-000003.tar"), before = content(path);
  const std::string sums = content(shards_.path("SHA256SUMS"));
  std::filesystem::remove(path);
  for (const char* name : {"shards.jsonl", "SHA256SUMS"}) std::filesystem::remove(shards_.path(name));
  ShardOptions options;
  options.folder = shards_.path(), options.max_images = 7;
  const auto again = [&] {
    return write_shards({{"train", images_.train}, {"validation", images_.validation}}, options, [](auto, auto) {});
  };
  EXPECT_EQ(again().kept, 8);
  EXPECT_EQ(content(path), before);
  EXPECT_EQ(content(shards_.path("SHA256SUMS")), sums);
  EXPECT_EQ(again().kept, 9);
  options.max_images = 8;
  EXPECT_TRUE(says(complaint(again), "is not one of the 8 shards that this command writes; choose an empty folder"));
  options.max_images = 7, options.seed = 5;
  EXPECT_TRUE(says(complaint(again), "is there with other content; choose an empty folder"));
  EXPECT_EQ(content(path), before);
}

TEST_F(WebDataset, ShardsHaveTheSizeThatIsAskedFor) {
  ShardOptions options;
  set_shard_size(options, "2MB");
  EXPECT_EQ(options.max_images, 0);
  EXPECT_EQ(options.max_bytes, 2'000'000);
  for (const char* size : {"", "0", "-1", "5TB", "MB", "9999999999999999999"})
    EXPECT_THROW(set_shard_size(options, size), UsageError) << size;
  const TemporaryFolder folder;
  options.folder = folder.path(), options.max_bytes = 5 * 2048, options.shuffled = false;
  // Each small image takes a header and a block for itself and for its label: 2048 bytes.
  EXPECT_EQ(write_shards({{"train", images_.train}}, options, [](auto, auto) {}).shards, 10);
  const DataSplits set = make("webdataset", {{"root", folder.path()}, {"channels", 1}});
  const DataSplits glyphs = make("glyphs", {{"train", 10}});
  EXPECT_TRUE(says(complaint([&] {
                     write_shards({{"train", glyphs.train}}, options, [](auto, auto) {});
                   }),
                   "has images that are not files"));
}

TEST(WebDatasetLabels, AreNumbersNamesOrLinesOfClassesTxt) {
  const TemporaryFolder folder;
  const auto shard = [&](const std::vector<std::string>& labels) {
    std::string text;
    for (size_t i = 0; i < labels.size(); ++i)
      text += tar_entry(cat(i, ".png"), grey_png(static_cast<int>(i))) + tar_entry(cat(i, ".cls"), labels[i]);
    folder.write("a.tar", text + kTarEnd);
  };
  const Json settings{{"root", folder.path()}, {"train_shards", "a.tar"}, {"test_shards", "b.tar"}, {"validation", 0}};
  folder.write("b.tar", tar_entry("0.png", grey_png(0)) + tar_entry("0.cls", "2") + kTarEnd);
  shard({"1", "0"});
  const DataSplits numbers = make("webdataset", settings);
  EXPECT_EQ(numbers.train->info().classes, (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_EQ(numbers.train->label(0), 1);
  EXPECT_EQ(numbers.test->label(0), 2);
  shard({"dog", "cat"});
  EXPECT_EQ(make("webdataset", settings).train->info().classes, (std::vector<std::string>{"2", "cat", "dog"}));
  folder.write("classes.txt", "dog\r\nowl\ncat");
  const DataSplits named = make("webdataset", settings);
  EXPECT_EQ(named.train->info().classes, (std::vector<std::string>{"dog", "owl", "cat"}));
  EXPECT_EQ(named.train->label(1), 2);
  shard({"dog", "cow"});
  EXPECT_TRUE(says(problem("webdataset", settings), "a.tar/1.png: classes.txt has no class \"cow\""));
  shard({"3", "0"});
  EXPECT_TRUE(says(problem("webdataset", settings), "a.tar/0.png: label 3 is out of range; classes.txt has 3"));
  for (const auto& [text, part] : std::map<std::string, std::string>{
           {"", "is empty"}, {"a\n\nb\n", ":2 is empty"}, {"a\nb\na\n", ":3: class a is there twice"}}) {
    folder.write("classes.txt", text);
    EXPECT_TRUE(says(problem("webdataset", settings), "classes.txt" + (part[0] == ':' ? part : " " + part)));
  }
  std::filesystem::remove(folder.path("classes.txt"));
  shard({"99999999", "0"});
  EXPECT_TRUE(says(problem("webdataset", settings), "a.tar/0.png: label 99999999 is out of range"));
}

TEST(WebDatasetSettings, AreChecked) {
  const TemporaryFolder folder;
  folder.write("a.tar", tar_entry("0.png", "no image") + tar_entry("0.cls", "2") + kTarEnd);
  const auto with = [&](Json more) {
    more["root"] = folder.path();
    return problem("webdataset", more);
  };
  EXPECT_TRUE(says(problem("webdataset", Json::object()), "set data.root"));
  EXPECT_TRUE(says(with({{"test_shards", "a.tar"}}), "data.train_shards is empty"));
  EXPECT_TRUE(says(with({{"train_shards", "a.tar"}, {"test_shards", "a.tar"}}),
                   "data.test_shards names a.tar, as does data.train_shards"));
  EXPECT_TRUE(says(with({{"train_shards", "b.tar"}}), "b.tar: No such file"));
  EXPECT_TRUE(
      says(problem("webdataset", {{"root", "http://127.0.0.1:1/"}}), "cannot read http://127.0.0.1:1/shards.jsonl"));
  folder.write("b.tar", tar_entry("0.png", "no image") + tar_entry("0.cls", "0") + kTarEnd);
  const DataSplits set = make(
      "webdataset", {{"root", folder.path()}, {"train_shards", "a.tar"}, {"test_shards", "b.tar"}, {"validation", 0}});
  EXPECT_TRUE(says(complaint([&] { set.train->get(0); }), "a.tar/0.png"));
}

}  // namespace sparsight::webdataset_test
