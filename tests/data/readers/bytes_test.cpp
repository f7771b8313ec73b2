#include "sparsight/data/readers/bytes.h"

#include <gtest/gtest.h>

#include "tests/data/readers/fixtures.h"
#include "tests/support/program.h"

namespace sparsight::bytes_test {

using testing::complaint;
using testing::gzip;
using testing::says;
using testing::to_bytes;

TEST(Inflate, ReadsOneMemberAndSeveral) {
  EXPECT_EQ(inflate(to_bytes(gzip("hello")), 100, "x"), to_bytes("hello"));
  EXPECT_EQ(inflate(to_bytes(gzip("hel") + gzip("") + gzip("lo")), 100, "x"), to_bytes("hello"));
  EXPECT_EQ(inflate(to_bytes(gzip("hello")), 3, "x"), to_bytes("hel"));
}

TEST(Inflate, TakesNoMoreMemoryThanItsLimit) {
  const std::string bomb = gzip(std::string(50 << 20, 'a'));
  const Bytes some = inflate(to_bytes(bomb), 1000, "bomb.gz");
  EXPECT_EQ(some.size(), 1000u);
  EXPECT_LE(some.capacity(), 4096u);
  // Neither does one that has much less than its limit: what is reserved and not written to is no memory.
  EXPECT_EQ(inflate(to_bytes(gzip("hello")), size_t{1} << 40, "x").size(), 5u);
  EXPECT_EQ(inflate(to_bytes(bomb), size_t{1} << 40, "bomb.gz").size(), size_t{50} << 20);
}

TEST(Inflate, RefusesCutOffAndDamagedStreams) {
  std::string packed = gzip(std::string(1000, 'x') + "the end");
  for (size_t length = 2; length < packed.size(); ++length)
    EXPECT_TRUE(says(complaint([&] { inflate(to_bytes(packed.substr(0, length)), 5000, "x.gz"); }), "x.gz: "))
        << length;
  packed[packed.size() - 6] ^= 1;  // the checksum
  EXPECT_TRUE(says(complaint([&] { inflate(to_bytes(packed), 5000, "x.gz"); }), "damaged"));
}

TEST(ReadBytes, SaysWhatIsWrongWithAPath) {
  const testing::TemporaryFolder folder;
  EXPECT_TRUE(says(complaint([&] { read_bytes(folder.path("no")); }), "No such file"));
  EXPECT_TRUE(says(complaint([&] { read_bytes(folder.path()); }), "it is a folder"));
  EXPECT_TRUE(says(complaint([&] { read_bytes("/dev/zero"); }), "not a regular file"));
  EXPECT_TRUE(says(complaint([&] { read_bytes(folder.write("big", "12345"), 4); }), "5 bytes; at most 4"));
  EXPECT_EQ(read_bytes(folder.write("empty", "")), Bytes{});
}

TEST(Printable, EscapesWhatIsNotOneLineOfUtf8) {
  EXPECT_EQ(printable("plain name.jpg"), "plain name.jpg");
  EXPECT_EQ(printable("caf\xC3\xA9 \xF0\x9F\x98\x80"), "caf\xC3\xA9 \xF0\x9F\x98\x80");
  EXPECT_EQ(printable("caf\xE9"), "caf\\xe9");               // Latin-1
  EXPECT_EQ(printable("a\nb\x1b[31m"), "a\\x0ab\\x1b[31m");  // control characters
  EXPECT_EQ(printable("\xC0\xAF"), "\\xc0\\xaf");            // overlong
  EXPECT_EQ(printable("\xED\xA0\x80"), "\\xed\\xa0\\x80");   // a surrogate
  EXPECT_EQ(printable("\xE2\x82"), "\\xe2\\x82");            // cut off
}

TEST(Printable, NamesThatDifferStayDifferent) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(printable_names({"a\\b", "\xFF", "\xFF"}), (Names{"a\\b", "\\xff", "\\xff"}));
  EXPECT_EQ(printable_names({"a\xFF", "a\\xff", "a\\x5cxff"}), (Names{"a\\xff", "a\\x5cxff", "a\\x5cx5cxff"}));
}

TEST(Printable, KnowsUtf8) {
  EXPECT_TRUE(is_utf8("caf\xC3\xA9\n"));
  EXPECT_FALSE(is_utf8("caf\xE9"));
}

TEST(Printable, EscapesWhatSteersATerminalOrCannotBeSeen) {
  EXPECT_EQ(printable("\x7F"), "\\u007f");
  EXPECT_EQ(printable("\u0080\u009B31m\u009F\u00A0"), "\\u0080\\u009b31m\\u009f\u00A0");  // C1
  for (const char* hidden : {"\u061C", "\u200B", "\u200E", "\u200F", "\u2028", "\u2029", "\u202A", "\u202B", "\u202C",
                             "\u202D", "\u202E", "\u2060", "\u2066", "\u2067", "\u2068", "\u2069", "\uFEFF"})
    EXPECT_TRUE(printable(hidden).starts_with("\\u")) << printable(hidden);
  EXPECT_EQ(printable("a\u202Eb"), "a\\u202eb");
  for (const char* seen : {"\u200C", "\u200D", "\u2010", "\u2027", "\u202F", "\u2070", "\u00E9", "\U0001F600"})
    EXPECT_EQ(printable(seen), seen);
  const std::string once = printable("\x1b\u202E\xff");
  EXPECT_EQ(printable(once), once);
}

}  // namespace sparsight::bytes_test
