// Opens reports in a real browser: every chart is drawn, there are no console errors and no network requests.
#include <gtest/gtest.h>

#include "sparsight/io/atomic_file.h"
#include "sparsight/report/report.h"
#include "tests/report/browser.h"
#include "tests/report/run_fixture.h"

namespace sparsight::report_browser_test {
namespace {

using testing::BrowserPage;

class ReportBrowser : public ::testing::Test {
 protected:
  void SetUp() override {
    browser_ = testing::find_browser();
    if (browser_.empty()) GTEST_SKIP() << "no chromium on the PATH (or set SPARSIGHT_BROWSER)";
  }

  BrowserPage open_report(const std::string& metrics, const std::string& config) {
    return testing::open_in_browser(browser_, write_report(testing::write_run(folder_, "run", metrics, config)));
  }

  static void expect_clean(const BrowserPage& page, int charts) {
    EXPECT_EQ(page.charts, charts);
    EXPECT_EQ(page.console, "");
    EXPECT_NE(page.dom.find("id=\"problems\" hidden"), std::string::npos) << "the page noted a problem";
    EXPECT_GE(testing::count(page.dom, "<svg"), charts);
  }

  testing::TemporaryFolder folder_;
  std::string browser_;
};

TEST_F(ReportBrowser, DrawsEveryChart) {
  // Loss, accuracy, auxiliary losses, learning rate, speed; two of balance, load and classes of the one layer.
  expect_clean(open_report(testing::lines(testing::usual_records()), "[model]\nname = \"vit\"\n"), 9);
}

TEST_F(ReportBrowser, DrawsManyExperts) {
  const std::vector<int> load(64, 3);
  const std::string one = testing::lines({testing::eval_record("val", 1, 0.5, load)});
  const std::string two = testing::lines({testing::eval_record("val", 2, 0.6, load)});
  // Without training records: loss and accuracy of the evaluations, balance twice, load, classes.
  expect_clean(open_report(one, ""), 6);
  expect_clean(open_report(one + two, ""), 6);
}

TEST_F(ReportBrowser, DrawsSeveralRuns) {
  const std::string hostile = "</script><img src=x onerror=document.title='owned'>";
  std::vector<std::string> runs;
  for (const std::string name : {"a", "b", "c"})
    runs.push_back(testing::write_run(folder_, name, testing::lines(testing::usual_records()),
                                      "[data]\nname = \"" + hostile + name + "\"\n"));
  const BrowserPage page =
      testing::open_in_browser(browser_, write_overlaid_report(runs, folder_.path("comparison.html")));
  expect_clean(page, 5);  // loss and accuracy of training and validation, learning rate
  EXPECT_NE(page.dom.find("<title>Runs - Sparsight report</title>"), std::string::npos);
}

TEST_F(ReportBrowser, HostileTextStaysText) {
  const std::string attack =
      "</script><script>document.title='owned'</script><img src=x onerror=document.title='owned'>";
  Json eval = testing::eval_record("val", 10, 0.5), train = testing::train_record(10, 1);
  eval["split"] = attack;
  eval["layers"][0]["layer"] = attack;
  eval["class_expert"] = Json::object();
  eval["class_expert"][attack] = Json::parse("[[1, 2, 3], [3, 2, 1]]");
  eval["cells"] = {{{"class", attack}, {"domain", attack}, {"images", 3}, {"accuracy", 0.5}},
                   {{"class", attack}, {"domain", "clean"}, {"images", 3}, {"accuracy", 1}}};
  train["losses"] = Json::object();
  train["losses"][attack] = 1.0;
  const Json note = {{"kind", "note"}, {"step", 1}, {"text", attack}};
  const BrowserPage page = open_report(testing::lines({train, eval, note}), "[data]\nname = \"" + attack + "\"\n");
  expect_clean(page, 9);
  EXPECT_NE(page.dom.find("<title>run - Sparsight report</title>"), std::string::npos);
  EXPECT_EQ(testing::count(page.dom, "<img src=\"x\""), 0) << "as the browser writes a picture that it took for one";
}

TEST_F(ReportBrowser, TheTestSeesErrorsAndRequests) {
  std::string page = read_file(
      write_report(testing::write_run(folder_, "run", testing::lines(testing::usual_records()))), size_t{1} << 24);
  page.insert(page.rfind("</body>"),
              "<img src=\"http://127.0.0.1:9/picture.png\"><script>console.error('on purpose')</script>");
  const BrowserPage opened = testing::open_in_browser(browser_, folder_.write("broken.html", page));
  EXPECT_EQ(opened.dom.find("id=\"problems\" hidden"), std::string::npos);
  EXPECT_NE(opened.dom.find("blocked: http://127.0.0.1:9"), std::string::npos);
  EXPECT_NE(opened.console.find("on purpose"), std::string::npos);
}

}  // namespace
}  // namespace sparsight::report_browser_test
