#include "sparsight/core/printable_stream.h"

#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"

namespace sparsight::printable_stream_test {
namespace {

TEST(PrintableStream, EscapesAllButNewlinesAndTabs) {
  std::ostringstream terminal;
  PrintableStream stream(terminal);
  stream << "a\tb " << 3 << "\x1b[31m\u202E\r\n" << 'c' << std::flush;
  EXPECT_EQ(terminal.str(), "a\tb 3\\x1b[31m\\u202e\\x0d\nc");
}

TEST(PrintableStream, CharactersMayComeInParts) {
  std::ostringstream terminal;
  PrintableStream stream(terminal);
  stream << "caf\xC3" << '\xA9' << " \xE2\x80"
         << "\xAE\n";
  EXPECT_EQ(terminal.str(), "caf\u00E9 \\u202e\n");
  stream << "\xE2\x80" << std::flush;  // never completed
  EXPECT_EQ(terminal.str(), "caf\u00E9 \\u202e\n\\xe2\\x80");
}

TEST(PrintableStream, JsonStaysTheSameJson) {
  std::ostringstream terminal;
  const Json json{{"name\u202E", "\x1b\x7F\u009B\u2028"}, {"list", {1, "caf\u00E9"}}};
  { PrintableStream(terminal) << json.dump(2); }
  EXPECT_EQ(Json::parse(terminal.str()), json);
  EXPECT_EQ(terminal.str().find("\u202E"), std::string::npos);
}

TEST(PrintableStream, SaysWhenTheTextCannotBeWritten) {
  std::ostringstream terminal;
  terminal.setstate(std::ios::badbit);
  PrintableStream stream(terminal);
  EXPECT_TRUE((stream << "waits").good());
  EXPECT_FALSE(stream.flush().good());
}

}  // namespace
}  // namespace sparsight::printable_stream_test
