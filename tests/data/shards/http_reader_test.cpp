#include "sparsight/data/shards/http_reader.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/data/readers/fixtures.h"
#include "tests/support/http_server.h"

namespace sparsight::http_reader_test {

using testing::complaint;
using testing::HttpResponse;
using testing::HttpServer;
using testing::says;
using Requests = std::vector<std::string>;

// A server, and a body whose bytes encode their position.
class ReadHttp : public ::testing::Test {
 protected:
  ReadHttp() {
    setenv("no_proxy", "127.0.0.1", 1);
    for (int i = 0; i < 20000; ++i) body_ += static_cast<char>(i * i % 251);
    options_.first_pause = 0.01;
  }

  std::string url() const { return server_.address("/file"); }
  std::string part(int64_t first, int64_t bytes) const {
    const FilePart part = HttpReader(options_).part(url(), first, bytes);
    EXPECT_EQ(part.total, 20000);
    return std::string(part.bytes.begin(), part.bytes.end());
  }
  std::string problem() const {
    const std::string message = complaint([&] { HttpReader(options_).part(url(), 1000, 5000); });
    EXPECT_TRUE(says(message, "cannot read 5000 bytes from byte 1000 on of " + url()));
    EXPECT_EQ(message.find('\n'), std::string::npos);
    return message;
  }

  HttpServer server_;
  std::string body_;
  HttpReadOptions options_;
};

TEST_F(ReadHttp, Parts) {
  server_.answer("/file", {{body_}});
  EXPECT_EQ(part(1000, 5000), body_.substr(1000, 5000));
  EXPECT_EQ(part(19000, 5000), body_.substr(19000));
  EXPECT_EQ(server_.requests(), (Requests{"/file 1000-5999", "/file 19000-23999"}));
}

TEST_F(ReadHttp, GoOnWhereAnAnswerBrokeOff) {
  server_.answer("/file", {{body_, 200, 1500}, {"busy", 503}, {body_, 200, 700}, {body_}});
  EXPECT_EQ(part(1000, 5000), body_.substr(1000, 5000));
  EXPECT_EQ(server_.requests(), (Requests{"/file 1000-5999", "/file 2500-5999", "/file 2500-5999", "/file 3200-5999"}));
  server_.answer("/whole", {{body_, 200, 1500}, {body_}});
  const auto whole = HttpReader(options_).whole(server_.address("/whole"), 20000);
  ASSERT_TRUE(whole);
  EXPECT_EQ(std::string(whole->begin(), whole->end()), body_);
  EXPECT_EQ(server_.requests().back(), "/whole 1500-");
}

TEST_F(ReadHttp, AWholeFileStartsAgainWithoutRanges) {
  server_.answer("/file", {{body_, 200, 1500}, {body_, 200, -1, false}});
  const auto whole = HttpReader(options_).whole(url(), 20000);
  ASSERT_TRUE(whole);
  EXPECT_EQ(std::string(whole->begin(), whole->end()), body_);
}

TEST_F(ReadHttp, GiveUpOnBadServers) {
  server_.answer("/file", {{body_, 200, -1, false}});
  EXPECT_TRUE(says(problem(), "it does not answer requests for parts of a file (Range)"));
  server_.answer("/file", {{.body = body_, .range_shift = 7}});
  EXPECT_TRUE(says(problem(), "it was requested to send bytes from 1000 on and sends those from 1007 on"));
  server_.answer("/file", {{"none", 404}});
  EXPECT_TRUE(says(problem(), "HTTP status 404; is the name of the shard right?"));
  server_.answer("/file", {{"short"}});
  EXPECT_TRUE(says(problem(), "its file has no byte 1000"));
  server_.answer("/file", {{body_, 200, 100}, {body_ + "more"}});
  EXPECT_TRUE(says(problem(), "the file had 20000 bytes and now has 20004"));
  server_.answer("/file", {{.body = std::string(1000, 'x'), .endless = "headers"}});
  EXPECT_TRUE(says(problem(), "bytes of HTTP headers"));
  const size_t before = server_.requests().size();
  server_.answer("/file", {{"busy", 503}});
  EXPECT_TRUE(says(problem(), "HTTP status 503"));
  EXPECT_EQ(server_.requests().size() - before, 4u);
  server_.answer("/file", {{body_, 200, 0}});
  EXPECT_NE(problem(), "");
}

TEST_F(ReadHttp, MissingAndEndlessFiles) {
  EXPECT_FALSE(HttpReader(options_).whole(server_.address("/none"), 100));
  server_.answer("/file", {{.body = body_, .endless = "body"}});
  EXPECT_TRUE(says(complaint([&] { HttpReader(options_).whole(url(), 30000); }), "it sends more than 30000 bytes"));
}

}  // namespace sparsight::http_reader_test
