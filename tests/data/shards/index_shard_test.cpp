#include "sparsight/data/shards/index_shard.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "sparsight/data/shards/tar_members.h"
#include "sparsight/engine/file/byte_source.h"
#include "tests/data/readers/fixtures.h"
#include "tests/data/shards/tar_text.h"

namespace sparsight::index_shard_test {

using testing::complaint;
using testing::gzip;
using testing::kTarEnd;
using testing::pax_entry;
using testing::says;
using testing::tar_entry;
using testing::with_field;

ShardIndex index(const std::string& text) {
  return index_shard(*engine::bytes_in_memory({reinterpret_cast<const uint8_t*>(text.data()), text.size()}, "a.tar"));
}

std::string problem(const std::string& text) {
  const std::string message = complaint([&] { index(text); });
  EXPECT_EQ(message.rfind("a.tar", 0), 0u) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

const std::string kSample = tar_entry("1.jpg", "picture") + tar_entry("1.cls", "3");

TEST(IndexShard, FindsImagesAndLabelsOfSamples) {
  const std::string text = tar_entry("d/", "", '5') + tar_entry("d/a.1.JPG", "x") + tar_entry("d/a.json", "{}") +
                           tar_entry("d/b.json", "{}") + tar_entry("d/b.cls", " cat \n") +
                           tar_entry("d/b.seg.png", "mask") + tar_entry("d/b.jpeg", std::string(600, 'p')) + kTarEnd;
  // d/a.1.JPG is no image, as its ending is 1.JPG: sample d/a lacks one.
  EXPECT_TRUE(says(problem(text), "sample d/a has no image"));
  const std::string right = text.substr(512 + 1024 + 1024);
  const ShardIndex found = index(right);
  EXPECT_EQ(found.bytes, static_cast<int64_t>(right.size()));
  ASSERT_EQ(found.images.size(), 1u);
  EXPECT_EQ(found.images[0].name, "d/b.jpeg");
  EXPECT_EQ(found.images[0].label, "cat");
  // Headers of 512 bytes and contents of 512 for b.json, b.cls and b.seg.png, then the header of b.jpeg.
  EXPECT_EQ(found.images[0].offset, 3 * 1024 + 512);
  EXPECT_EQ(found.images[0].bytes, 600);
}

TEST(IndexShard, PassesOverMembersThatBelongToNoSample) {
  const ShardIndex found =
      index(tar_entry("README", "x") + tar_entry("._1.jpg", "x") + tar_entry("d.x/file", "x") + kSample + kTarEnd);
  ASSERT_EQ(found.images.size(), 1u);
  EXPECT_EQ(found.images[0].name, "1.jpg");
}

TEST(IndexShard, RefusesSamplesThatAreNotWhole) {
  EXPECT_TRUE(says(problem(tar_entry("1.jpg", "x") + kTarEnd), "sample 1 has no label; add a member 1.cls"));
  EXPECT_TRUE(says(problem(tar_entry("1.cls", "x") + kTarEnd), "sample 1 has no image"));
  // The label of 1 comes too late: it is another sample of the same name.
  EXPECT_TRUE(says(problem(tar_entry("1.jpg", "x") + kSample + kTarEnd), "sample 1 has two images, 1.jpg and 1.jpg"));
  EXPECT_TRUE(says(problem(tar_entry("1.jpg", "x") + tar_entry("2.jpg", "x") + tar_entry("1.cls", "1") + kTarEnd),
                   "sample 1 has no label"));
  EXPECT_TRUE(says(problem(kSample + tar_entry("1.png", "x") + kTarEnd), "sample 1 has two images, 1.jpg and 1.png"));
  EXPECT_TRUE(says(problem(kSample + tar_entry("1.cls", "4") + kTarEnd), "sample 1 has two labels"));
  EXPECT_TRUE(says(problem(tar_entry("1.cls", " \n") + kTarEnd), "member 1.cls is empty"));
  EXPECT_TRUE(says(problem(tar_entry("1.cls", "1\n2") + kTarEnd), "member 1.cls has several lines"));
  EXPECT_TRUE(says(problem(tar_entry("1.cls", "\xFF") + kTarEnd), "member 1.cls is not UTF-8 text"));
  EXPECT_TRUE(says(problem(tar_entry("1.cls", std::string(5000, '1')) + kTarEnd), "a label has at most 4096"));
  EXPECT_TRUE(says(problem(kTarEnd), "has no samples"));
}

TEST(IndexShard, RefusesShardsThatEndEarly) {
  const std::string whole = kSample + kTarEnd;
  // The end is 1024 zeros, of which 512 are enough.
  for (size_t size = 0; size < kSample.size() + 512; ++size) EXPECT_NE(problem(whole.substr(0, size)), "") << size;
  EXPECT_EQ(complaint([&] { index(whole.substr(0, kSample.size() + 512)); }), "");
  EXPECT_TRUE(says(problem(kSample), "ends early: at byte 2048 there is no end of the archive"));
  EXPECT_TRUE(says(problem(whole.substr(0, 515)), "member 1.jpg is said to have 7 bytes, but 3 are left"));
}

TEST(IndexShard, RefusesSizesThatLie) {
  const std::string entry = tar_entry("1.jpg", "x");
  EXPECT_TRUE(says(problem(with_field(entry, 124, "77777777777") + kTarEnd),
                   "member 1.jpg is said to have 8589934591 bytes, but 1536 are left"));
  // 2^63 - 1 and 2^63, as GNU writes them in base 256.
  const std::string most = std::string("\x80\0\0\0\x7F", 5) + std::string(7, '\xFF');
  EXPECT_TRUE(says(problem(with_field(entry, 124, most) + kTarEnd), "is said to have 9223372036854775807 bytes"));
  const std::string more = std::string("\x80\0\0\0\x80", 5) + std::string(7, '\0');
  EXPECT_TRUE(says(problem(with_field(entry, 124, more) + kTarEnd), "member 1.jpg has no valid size"));
  EXPECT_TRUE(says(problem(with_field(entry, 124, std::string(12, '\xFF')) + kTarEnd), "has no valid size"));
  EXPECT_TRUE(says(problem(with_field(entry, 124, std::string(12, ' ')) + kTarEnd), "has no valid size"));
  for (const char* size : {"-1", "99999999999999999999", "1x", ""})
    EXPECT_TRUE(says(problem(pax_entry("size", size) + kSample + kTarEnd), "has no valid records")) << size;
  EXPECT_TRUE(says(problem(pax_entry("size", "9223372036854775807") + kSample + kTarEnd),
                   "member 1.jpg is said to have 9223372036854775807 bytes"));
}

TEST(IndexShard, ReadsLongNamesOfGnuAndPax) {
  const std::string name = std::string(300, 'n') + ".jpg", label = std::string(300, 'n') + ".cls";
  const std::string end = tar_entry("cut", "1") + kTarEnd;
  for (const std::string& text :
       {tar_entry("@", name + '\0', 'L') + tar_entry("cut", "x") + tar_entry("@", label + '\0', 'L') + end,
        pax_entry("path", name) + tar_entry("cut", "x") + pax_entry("path", label) + end}) {
    const ShardIndex found = index(text);
    ASSERT_EQ(found.images.size(), 1u);
    EXPECT_EQ(found.images[0].name, name);
  }
  EXPECT_EQ(index(pax_entry("size", "600") + with_field(tar_entry("1.jpg", std::string(600, 'x')), 124, "00000000000") +
                  tar_entry("1.cls", "1") + kTarEnd)
                .images[0]
                .bytes,
            600);
}

TEST(IndexShard, RefusesHostileNamesAndKinds) {
  const auto named = [](const std::string& name) { return pax_entry("path", name) + kSample + kTarEnd; };
  EXPECT_TRUE(says(problem(named(std::string(5000, 'n'))), "has a name of 5000 bytes"));
  EXPECT_TRUE(says(problem(named(std::string("a\0.jpg", 6))), "without NUL"));
  EXPECT_TRUE(says(problem(tar_entry("@", std::string(5000, 'n'), 'L') + kSample + kTarEnd), "at most 4097 are read"));
  EXPECT_TRUE(says(problem(pax_entry("path", std::string(1 << 21, 'n')) + kSample + kTarEnd), "are read"));
  // Names are never paths of files, so these do no harm.
  for (const char* name : {"../1", "/etc/1"})
    EXPECT_EQ(index(tar_entry(cat(name, ".jpg"), "x") + tar_entry(cat(name, ".cls"), "1") + kTarEnd).images[0].name,
              cat(name, ".jpg"));
  EXPECT_TRUE(says(problem(tar_entry("\x1B[2J\n.jpg", "x") + kTarEnd), "sample \\x1b[2J\\x0a has no label"));
  for (const auto& [kind, text] : std::vector<std::pair<char, std::string>>{{'1', "a hard link"},
                                                                            {'2', "a symbolic link"},
                                                                            {'3', "a device"},
                                                                            {'4', "a device"},
                                                                            {'6', "a pipe"},
                                                                            {'S', "a sparse file"},
                                                                            {'V', "of an unknown kind"}})
    EXPECT_TRUE(says(problem(kSample + tar_entry("2.jpg", "", kind) + kTarEnd), "member 2.jpg is " + text)) << kind;
  EXPECT_TRUE(says(problem(pax_entry("GNU.sparse.major", "1") + kSample + kTarEnd), "there is a sparse file"));
}

TEST(IndexShard, RefusesWhatIsNoTar) {
  EXPECT_TRUE(says(problem(gzip(std::string(5000, 'x')) + std::string(1000, 'x')), "is not a tar archive"));
  std::string damaged = kSample + kTarEnd;
  damaged[1024 + 3] ^= 1;  // in the second header
  EXPECT_TRUE(says(problem(damaged), "is damaged: there is no tar header at byte 1024"));
}

TEST(IndexShard, SurvivesAnyDamage) {
  const std::string whole = pax_entry("path", "1.png") + kSample + tar_entry("@", "22.jpg", 'L') + kSample + kTarEnd;
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string text = whole;
    for (int flips = 0; flips < 3; ++flips) text[random() % text.size()] = static_cast<char>(random());
    const std::string message = complaint([&] { index(text); });
    EXPECT_EQ(printable(message), message);
  }
}

}  // namespace sparsight::index_shard_test
