#include "sparsight/data/download.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "sparsight/data/hash.h"
#include "tests/data/readers/fixtures.h"
#include "tests/support/http_server.h"
#include "tests/support/program.h"

namespace sparsight::download_test {

using testing::complaint;
using testing::HttpServer;
using testing::says;
using testing::TemporaryFolder;
using testing::to_bytes;

// A server, a folder, and a body whose bytes encode their position.
class Download : public ::testing::Test {
 protected:
  Download() {
    setenv("no_proxy", "127.0.0.1", 1);
    for (int i = 0; i < 20000; ++i) body_ += static_cast<char>(i * i % 251);
    digest_ = hash_bytes(to_bytes(body_));
    options_.first_pause = 0.01;
  }

  std::string check(const std::string& path) const {
    return hash_file(path) == digest_ ? "" : "its file is another one";
  }

  void fetch(const std::vector<std::string>& urls) {
    download(
        urls, [this](const std::string& path) { return check(path); }, path(), options_);
  }

  std::string path() const { return folder_.path("file"); }
  bool there(const std::string& file) const { return std::filesystem::exists(file); }
  void expect_whole() const {
    EXPECT_EQ(hash_file(path()), digest_);
    EXPECT_FALSE(there(path() + ".part"));
  }

  HttpServer server_;
  TemporaryFolder folder_;
  std::string body_, digest_;
  DownloadOptions options_;
};

TEST_F(Download, DeliversAFileAndReportsProgress) {
  server_.answer("/file", {{body_}});
  int64_t last = 0;
  options_.progress = [&](int64_t done, int64_t) { last = done; };
  fetch({server_.address("/file")});
  expect_whole();
  EXPECT_EQ(last, 20000);
}

TEST_F(Download, ContinuesAnInterruptedTransfer) {
  server_.answer("/file", {{body_, 200, 5000}, {body_, 200, 7000}, {body_}});
  fetch({server_.address("/file")});
  expect_whole();
  EXPECT_EQ(server_.requests(), std::vector<std::string>({"/file", "/file 5000-", "/file 12000-"}));
}

TEST_F(Download, ContinuesWhatAnEarlierCallLeft) {
  server_.answer("/file", {{body_, 200, 5000}});
  options_.tries = 1;
  EXPECT_TRUE(says(complaint([&] { fetch({server_.address("/file")}); }), "cannot download file (http://127.0.0.1:"));
  EXPECT_FALSE(there(path()));
  ASSERT_TRUE(there(path() + ".part"));
  server_.answer("/file", {{body_}});
  fetch({server_.address("/file")});
  expect_whole();
  EXPECT_EQ(server_.requests().back(), "/file 5000-");
}

TEST_F(Download, StartsAgainWhereTheServerCannotContinue) {
  folder_.write("file.part", body_.substr(0, 300));
  server_.answer("/file", {{body_, 200, -1, false}});
  fetch({server_.address("/file")});
  expect_whole();
}

TEST_F(Download, StartsAgainAfterAPartThatIsWrong) {
  folder_.write("file.part", std::string(300, 'x'));
  server_.answer("/file", {{body_}});
  fetch({server_.address("/file")});
  expect_whole();
  EXPECT_EQ(server_.requests(), std::vector<std::string>({"/file 300-", "/file"}));
}

TEST_F(Download, StartsAgainAfterAPartThatIsTooLong) {
  folder_.write("file.part", std::string(30000, 'x'));
  server_.answer("/file", {{body_}});
  fetch({server_.address("/file")});
  expect_whole();
}

TEST_F(Download, GoesToTheNextMirror) {
  server_.answer("/good/file", {{body_}});
  server_.answer("/other/file", {{"something else"}});
  fetch({server_.address("/none/file"), server_.address("/other/file"), server_.address("/good/file")});
  expect_whole();
  EXPECT_EQ(server_.requests(), std::vector<std::string>({"/none/file", "/other/file", "/good/file"}));
}

TEST_F(Download, TriesAgainWhenTheServerIsBusy) {
  server_.answer("/file", {{"", 503}, {body_}});
  fetch({server_.address("/file")});
  expect_whole();
}

TEST_F(Download, FollowsRedirectionsToTheWebOnly) {
  server_.answer("/old", {{"", 302, -1, true, server_.address("/file")}});
  server_.answer("/file", {{body_}});
  fetch({server_.address("/old")});
  expect_whole();
  server_.answer("/evil", {{"", 302, -1, true, "file:///etc/passwd"}});
  std::filesystem::remove(path());
  EXPECT_NE(complaint([&] { fetch({server_.address("/evil")}); }), "");
  EXPECT_FALSE(there(path()));
}

TEST_F(Download, SaysWhatEachAddressAnswered) {
  server_.answer("/other", {{"something else"}});
  const std::string message = complaint([&] { fetch({server_.address("/none"), server_.address("/other")}); });
  EXPECT_TRUE(says(message, "/none: HTTP status 404"));
  EXPECT_TRUE(says(message, "/other: its file is another one"));
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_FALSE(there(path()));
  EXPECT_FALSE(there(path() + ".part"));
}

TEST_F(Download, RefusesEndlessBodies) {
  options_.max_bytes = 1000;
  server_.answer("/file", {{body_}});
  EXPECT_TRUE(says(complaint([&] { fetch({server_.address("/file")}); }), "more than 1000 bytes"));
}

TEST_F(Download, ServersThatNeverStopAreBrokenOff) {
  options_.max_bytes = 1 << 20;
  server_.answer("/body", {{.body = body_, .endless = "body"}});  // says no length
  EXPECT_TRUE(says(complaint([&] { fetch({server_.address("/body")}); }), "more than 1048576 bytes"));
  EXPECT_FALSE(there(path() + ".part"));
  server_.answer("/headers", {{.body = std::string(1000, 'x'), .endless = "headers"}});
  EXPECT_NE(complaint([&] { fetch({server_.address("/headers")}); }), "");
  EXPECT_EQ(server_.requests().size(), 2u);  // and not asked again
}

TEST_F(Download, ServersThatCrawlAreBrokenOff) {
  options_.tries = 1;
  options_.max_slow_seconds = 1;
  for (const char* what : {"body", "headers"}) {
    server_.answer("/slow", {{.body = "x", .endless = what, .pause_seconds = 0.2}});
    EXPECT_TRUE(says(complaint([&] { fetch({server_.address("/slow")}); }), "too slow")) << what;
  }
}

TEST_F(Download, SaysWhereItCannotWrite) {
  server_.answer("/file", {{body_}});
  EXPECT_TRUE(says(complaint([&] {
                     download(
                         {server_.address("/file")}, [](const std::string&) { return ""; }, folder_.path("no/file"));
                   }),
                   "cannot write"));
}

}  // namespace sparsight::download_test
