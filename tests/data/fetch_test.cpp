#include "sparsight/data/fetch.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "sparsight/data/hash.h"
#include "sparsight/data/untar.h"
#include "tests/data/readers/fixtures.h"
#include "tests/data/shards/tar_text.h"
#include "tests/support/http_server.h"
#include "tests/support/program.h"

namespace sparsight::fetch_test {

using testing::complaint;
using testing::gzip;
using testing::HttpServer;
using testing::kTarEnd;
using testing::says;
using testing::tar_entry;
using testing::TemporaryFolder;
using testing::to_bytes;

std::string read_text(const std::string& path) {
  const Bytes bytes = read_bytes(path);
  return std::string(bytes.begin(), bytes.end());
}

TEST(Untar, AnArchiveUnpacksNoFurtherThanTheDataset) {
  const TemporaryFolder folder;
  const std::string tar = tar_entry("other", std::string(10'000'000, 'x')) + tar_entry("a", "body") + kTarEnd;
  const std::string archive = folder.write("x.tar.gz", gzip(tar));
  EXPECT_TRUE(says(complaint([&] {
                     untar(archive, {{"a", folder.path("a")}}, 1'000'000);
                   }),
                   "unpacks to more bytes than the dataset has"));
  untar(archive, {{"a", folder.path("a")}}, 11'000'000);
  EXPECT_EQ(read_text(folder.path("a")), "body");
  EXPECT_TRUE(says(complaint([&] { untar("/dev/zero", {{"a", folder.path("a")}}); }), "not a regular file"));
}

TEST(Untar, WritesWhatIsWantedAndNothingElse) {
  const TemporaryFolder folder;
  const std::string tar = tar_entry("../evil", "x") + tar_entry("/etc/evil", "x") + tar_entry("d/", "", '5') +
                          tar_entry("d/link", "", '2') + tar_entry("d/a", std::string(1000, 'a')) +
                          tar_entry("./d/b", "") + kTarEnd;
  const std::string archive = folder.write("x.tar.gz", gzip(tar));
  untar(archive, {{"d/a", folder.path("a")}, {"d/b", folder.path("b")}});
  EXPECT_EQ(read_text(folder.path("a")), std::string(1000, 'a'));
  EXPECT_EQ(read_text(folder.path("b")), "");
  EXPECT_FALSE(std::filesystem::exists(folder.path("../evil")));
  EXPECT_TRUE(says(complaint([&] { untar(archive, {{"d/link", folder.path("l")}}); }), "has no d/link"));
}

TEST(Untar, RefusesDamagedArchives) {
  const TemporaryFolder folder;
  const std::string good = gzip(tar_entry("a", std::string(3000, 'a')) + kTarEnd);
  for (size_t length = 0; length + 12 < good.size(); ++length) {
    const std::string archive = folder.write("x.tar.gz", good.substr(0, length));
    EXPECT_NE(complaint([&] { untar(archive, {{"a", folder.path("a")}}); }), "") << length;
    EXPECT_FALSE(std::filesystem::exists(folder.path("a")));
  }
  std::string wrong = tar_entry("a", "a");
  wrong[0] = 'b';  // its checksum is wrong now
  const std::string archive = folder.write("x.tar.gz", gzip(wrong + kTarEnd));
  EXPECT_TRUE(says(complaint([&] { untar(archive, {{"a", folder.path("a")}}); }), "damaged tar archive"));
}

// A made-up set of a gzip file and an archive.
class Fetch : public ::testing::Test {
 protected:
  Fetch() {
    setenv("no_proxy", "127.0.0.1", 1);
    packed_ = gzip("digits");
    archive_ = gzip(tar_entry("in/train.bin", "pixels") + tar_entry("in/names.txt", "cat\n") + kTarEnd);
    set_ = {"toy", "a toy", "none", "", {server_.address("/a/"), server_.address("/b/")}, {}};
    set_.files.push_back({"digits.gz", hash_bytes(to_bytes(packed_)), hash_bytes(to_bytes("digits")), {}});
    set_.files.push_back(
        {"toy.tar.gz",
         hash_bytes(to_bytes(archive_), "md5"),
         "",
         {{"in/train.bin", "train.bin", hash_bytes(to_bytes("pixels"))}, {"in/names.txt", "names.txt", ""}}});
    options_.to = folder_.path("toy");
    options_.download.first_pause = 0.01;
  }

  void publish(const std::string& base) {
    server_.answer(base + "digits.gz", {{packed_}});
    server_.answer(base + "toy.tar.gz", {{archive_}});
  }

  void expect_whole() {
    EXPECT_EQ(read_text(options_.to + "/train.bin"), "pixels");
    EXPECT_EQ(read_text(options_.to + "/names.txt"), "cat\n");
    EXPECT_EQ(read_text(options_.to + "/SHA256SUMS").substr(0, 64), hash_file(options_.to + "/digits.gz"));
    EXPECT_FALSE(std::filesystem::exists(options_.to + "/toy.tar.gz"));
  }

  HttpServer server_;
  TemporaryFolder folder_;
  std::string packed_, archive_;
  RemoteSet set_;
  FetchOptions options_;
};

TEST_F(Fetch, DownloadsUnpacksAndLeavesAloneWhatIsThere) {
  publish("/a/");
  fetch_set(set_, options_);
  expect_whole();
  const size_t requests = server_.requests().size();
  fetch_set(set_, options_);
  EXPECT_EQ(server_.requests().size(), requests);
  folder_.write("toy/train.bin", "damage");
  fetch_set(set_, options_);
  expect_whole();
  EXPECT_EQ(server_.requests().size(), requests + 1);
}

TEST_F(Fetch, TakesNoMoreThanTheSetHas) {
  publish("/a/");
  set_.files[0].max_bytes = std::ssize(packed_) - 1;
  EXPECT_TRUE(says(complaint([&] { fetch_set(set_, options_); }), "digits.gz: it sends more than"));
  set_.files[0].max_bytes = std::ssize(packed_);
  set_.files[1].max_bytes = 1000;  // the archive is smaller, what it unpacks to is not
  EXPECT_TRUE(says(complaint([&] { fetch_set(set_, options_); }), "unpacks to more bytes than the dataset has"));
  folder_.write("have/digits.gz", gzip(std::string(1 << 20, 'x')));
  options_.from = folder_.path("have");
  EXPECT_TRUE(says(complaint([&] { fetch_set(set_, options_); }), "digits.gz is not the published file"));
}

TEST_F(Fetch, UsesMirrorsAndTheOneThatIsGiven) {
  publish("/b/");
  fetch_set(set_, options_);
  expect_whole();
  publish("/mine/");
  options_.to = folder_.path("again");
  options_.mirror = server_.address("/mine");
  fetch_set(set_, options_);
  expect_whole();
}

TEST_F(Fetch, TakesAFolderHoweverItIsPacked) {
  folder_.write("have/digits", "digits");
  folder_.write("have/in/train.bin", "pixels");
  folder_.write("have/in/names.txt", "cat\n");
  options_.from = folder_.path("have");
  fetch_set(set_, options_);
  EXPECT_EQ(read_text(options_.to + "/digits"), "digits");
  EXPECT_EQ(read_text(options_.to + "/train.bin"), "pixels");
  EXPECT_TRUE(server_.requests().empty());

  folder_.write("packed/digits.gz", gzip("digits") + std::string(3, '\0'));  // packed by someone else
  folder_.write("packed/toy.tar.gz", archive_);
  options_.from = folder_.path("packed");
  options_.to = folder_.path("third");
  fetch_set(set_, options_);
  EXPECT_EQ(read_text(options_.to + "/train.bin"), "pixels");
}

TEST_F(Fetch, RefusesAFolderWithOtherFiles) {
  options_.from = folder_.path();
  EXPECT_TRUE(says(complaint([&] { fetch_set(set_, options_); }), "has no digits.gz and no digits"));
  folder_.write("digits.gz", gzip("others"));
  EXPECT_TRUE(says(complaint([&] { fetch_set(set_, options_); }), "digits.gz is not the published file"));
  folder_.write("digits.gz", packed_);
  folder_.write("train.bin", "others");
  folder_.write("names.txt", "cat\n");
  EXPECT_TRUE(says(complaint([&] { fetch_set(set_, options_); }), "has neither toy.tar.gz nor the files in it"));
  EXPECT_FALSE(std::filesystem::exists(options_.to + "/SHA256SUMS"));
}

TEST(RemoteSets, AreWellFormed) {
  for (const RemoteSet& set : remote_sets()) {
    EXPECT_FALSE(set.licence.empty());
    for (const std::string& mirror : set.mirrors)
      EXPECT_TRUE(mirror.starts_with("http") && mirror.ends_with("/")) << mirror;
    for (const RemoteFile& file : set.files) {
      EXPECT_TRUE(file.digest.size() == 64 || file.digest.size() == 32) << file.name;
      EXPECT_EQ(file.name.find('/'), std::string::npos);
      EXPECT_LE(file.max_bytes, 200'000'000) << file.name;  // the largest is CIFAR's archive, unpacked
      for (const ArchiveMember& member : file.members) EXPECT_EQ(member.name.find('/'), std::string::npos);
    }
  }
  EXPECT_TRUE(says(complaint([] { find_remote_set("fashion_mnist"); }), "did you mean \"fashion-mnist\"?"));
}

TEST(RemoteSets, WeightsAreWellFormed) {
  for (const RemoteSet& set : remote_weights()) {
    EXPECT_FALSE(set.licence.empty());
    EXPECT_TRUE(set.mirrors.front().starts_with("https://") && set.mirrors.front().ends_with("/")) << set.name;
    ASSERT_EQ(set.files.size(), 1u);
    const RemoteFile& file = set.files.front();
    EXPECT_EQ(file.digest.size(), 8u);
    EXPECT_TRUE(file.name.ends_with("-" + file.digest + ".pth")) << file.name;
    EXPECT_EQ(usual_folder(find_remote_set(set.name)), "weights/" + set.name);
  }
  EXPECT_EQ(usual_folder(find_remote_set("mnist")), "mnist");
  EXPECT_TRUE(says(complaint([] { find_remote_set("deit_smal"); }), "did you mean \"deit_small\"?"));
}

// The first digits of the SHA-256 of weights are known.
TEST_F(Fetch, ChecksTheFirstDigitsOfADigest) {
  set_.files = {{"w.pth", hash_bytes(to_bytes("weights")).substr(0, 8), "", {}}};
  server_.answer("/a/w.pth", {{"weights"}});
  fetch_set(set_, options_);
  EXPECT_EQ(read_text(options_.to + "/w.pth"), "weights");
  const size_t requests = server_.requests().size();
  fetch_set(set_, options_);
  EXPECT_EQ(server_.requests().size(), requests);
  folder_.write("toy/w.pth", "damage");
  server_.answer("/a/w.pth", {{"others"}});
  server_.answer("/b/w.pth", {{"others"}});
  EXPECT_TRUE(says(complaint([&] { fetch_set(set_, options_); }), "the published one begins with"));
  folder_.write("have/w.pth", "weights");
  options_.from = folder_.path("have");
  fetch_set(set_, options_);
  EXPECT_EQ(read_text(options_.to + "/w.pth"), "weights");
}

}  // namespace sparsight::fetch_test
