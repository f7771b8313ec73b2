// Heat maps of experts by class, domain and part, as the report shows them.
#include "sparsight/report/run/expert_map_sections.h"

#include <gtest/gtest.h>

#include "sparsight/io/atomic_file.h"
#include "sparsight/report/charts/expert_map_chart.h"
#include "sparsight/report/report.h"
#include "sparsight/report/report_page.h"
#include "tests/report/browser.h"
#include "tests/report/run_fixture.h"

namespace sparsight::expert_map_test {
namespace {

using testing::count;

// explain.json of two domains and a left and a right part: as `explain` writes it.
const char* const kExplained = R"({"caption": "best checkpoint, 30 images", "classes": ["cat", "dog"],
  "class_expert": {"blocks.1.mlp": [[30, 10, 0], [1000, 234, 5]]},
  "domains": ["photo", "sketch"], "domain_expert": {"blocks.1.mlp": [[25, 75, 0], [60, 0, 40]]},
  "domain_information": {"blocks.1.mlp": {"bits": 0.5, "shuffled": 0.125, "shuffled_deviation": 0.25, "maximum": 1}},
  "parts": ["left eye", "right eye", "background"], "part_experts": [
    {"layer": "blocks.1.mlp", "domain": null, "counts": [[9, 0, 0], [8, 1, 0], [100, 100, 100]],
     "information": {"bits": 0.25, "shuffled": 0.125, "shuffled_deviation": 0.0, "maximum": 1},
     "of_part_entropy": 0.25, "pairs": [{"pair": "eye", "same": true}]},
    {"layer": "blocks.1.mlp", "domain": "sketch", "counts": [[4, 0, 0], [0, 3, 0], [50, 50, 50]],
     "information": {"bits": 1, "shuffled": 0, "shuffled_deviation": 0, "maximum": 1},
     "of_part_entropy": null, "pairs": [{"pair": "eye", "same": false}]}]})";

std::string make_page(const testing::TemporaryFolder& folder, const std::string& explained) {
  const std::string run = testing::write_run(folder, "run", testing::lines(testing::usual_records()));
  folder.write("run/explain/explain.json", explained);
  return report_page(read_run_summary(run));
}

TEST(ExpertMaps, G54_TheReportShowsClassesDomainsAndParts) {
  const testing::TemporaryFolder folder;
  const std::string page = make_page(folder, kExplained);
  for (const char* part :
       {"<a href=\"#classes\">Classes and experts</a><a href=\"#domains\">Domains and experts</a>"
        "<a href=\"#parts\">Parts and experts</a>",
        "<summary>Domains and experts<small>best checkpoint, 30 images</small>",
        // 30 + 10 + 1000 + 234 + 5; 25 + 75 + 60 + 40; 9 + 8 + 1 + 300; 4 + 3 + 150
        "Class by expert: blocks.1.mlp<small>Rows: classes. Columns: experts. Colours: shares of a row&#39;s "
        "assignments "
        "of tokens, 1,279 in all. Rows also differ by chance.</small>",
        "Domain by expert: blocks.1.mlp<small>Rows: domains. Columns: experts. Colours: shares of a row&#39;s "
        "assignments of tokens, 200 in all. Information on the domain: 0.500 bits (shuffled domains: 0.125 +- 0.250, "
        "at "
        "most 1.00).</small>",
        "Part by expert: blocks.1.mlp<small>Rows: parts, the last the patches of no part. Columns: experts. Colours: "
        "shares of a row&#39;s patches, 318 in all. Information on the part: 0.250 bits (shuffled parts: 0.125 +- "
        "0.000, at most 1.00), 25.0 % of the parts&#39; entropy. Left and right go mostly to the same expert in 1 of 1 "
        "pairs (eye).</small>",
        "Part by expert: blocks.1.mlp, only sketch<small>", "157 in all. Information on the part: 1.000 bits",
        "at most 1.00). Left and right go mostly to the same expert in 0 of 1 pairs.</small>"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  // The cells: the share of expert 1 in photographs is 75 of 100, and of expert 0 in the left eye 9 of 9.
  EXPECT_NE(page.find(R"({"row":"photo","expert":1,"count":75.0,"share":0.75})"), std::string::npos);
  EXPECT_NE(page.find(R"({"row":"left eye","expert":0,"count":9.0,"share":1.0})"), std::string::npos);
  EXPECT_NE(page.find(R"({"row":"1 dog","expert":0,)"), std::string::npos);
}

TEST(ExpertMaps, ClassesOfTheLastEvaluationWithoutAnExplanation) {
  const testing::TemporaryFolder folder;
  const std::string page =
      report_page(read_run_summary(testing::write_run(folder, "run", testing::lines(testing::usual_records()))));
  EXPECT_NE(page.find("Class by expert: blocks.1.mlp<small>Rows: classes."), std::string::npos);
  EXPECT_NE(page.find("tokens, 80 in all."), std::string::npos);  // two classes of 30 + 10
  EXPECT_EQ(page.find("id=\"domains\""), std::string::npos);
  EXPECT_EQ(page.find("id=\"parts\""), std::string::npos);
}

TEST(ExpertMaps, RowsWithoutCountsAreLeftOutAndEqualNamesStaySeparate) {
  const ExpertMapWords words{"domains", "domain", "tokens"};
  const Json counts = Json::parse("[[1, 3], [0, 0], [2, 2], [4, 0]]");
  const Chart chart = expert_map_chart("t", counts, {"a", "b", "a"}, words);
  const Json& cells = chart.spec["data"]["values"];
  ASSERT_EQ(cells.size(), 6u);
  EXPECT_EQ(cells[0]["row"], "0 a");
  EXPECT_EQ(cells[2]["row"], "2 a");
  EXPECT_EQ(cells[4]["row"], "3") << "it has no name";
  EXPECT_EQ(chart.spec["encoding"]["y"]["sort"], Json({"0 a", "2 a", "3"}));
  EXPECT_TRUE(expert_map_chart("t", Json::parse("[[0, 0], [-1]]"), {}, words).spec.is_null());
  EXPECT_TRUE(expert_map_chart("t", Json::parse(R"({"a": 1})"), {}, words).spec.is_null());
  const Chart long_name = expert_map_chart("t", Json::parse("[[1]]"), {std::string(1000, 'x')}, words);
  EXPECT_EQ(long_name.spec["data"]["values"][0]["row"], "0");
}

// 300 experts: the first 45 have one assignment of the first row, the others two of the second, so the busiest 256 are
// 45 to 299 and, of the others, the first.
TEST(ExpertMaps, OfManyExpertsTheBusiestAreShown) {
  std::vector<int> first(300, 0), second(300, 2);
  for (size_t e = 0; e < 45; ++e) first[e] = 1, second[e] = 0;
  const Chart chart = expert_map_chart("t", Json{first, second}, {"a", "b"}, {"domains", "domain", "tokens"});
  const Json& cells = chart.spec["data"]["values"];
  ASSERT_EQ(cells.size(), 2u * 256);
  EXPECT_EQ(cells[0]["expert"], 0);
  EXPECT_EQ(cells[0]["share"], 1.0 / 45) << "shares are of all experts";
  EXPECT_EQ(cells[1]["expert"], 45);
  EXPECT_EQ(cells[511]["expert"], 299);
  EXPECT_NE(chart.note.find("Columns: the 256 busiest of 300 experts."), std::string::npos) << chart.note;
  EXPECT_NE(chart.note.find("555 in all."), std::string::npos) << chart.note;  // 45 + 2 * 255
}

// Entries of unexpected types, and numbers that no run has, cost their map at most.
TEST(ExpertMaps, DamagedExplanations) {
  for (
      const char* explained :
      {R"({"domains": 3, "domain_expert": [1], "parts": {"a": 1}, "part_experts": {"layer": "x"}})",
       R"({"domain_expert": {"a": 3, "b": [[1e308, 1e308], ["x", null]]}, "domain_information": [1]})",
       R"({"domains": [1, null], "domain_expert": {"a": [[1, 2], 3]}, "domain_information": {"a": "x"}})",
       R"({"parts": [[]], "part_experts": [3, null, {"counts": [[1]], "domain": 7, "pairs": [1, {"same": "yes"}]}]})"}) {
    const testing::TemporaryFolder folder;
    EXPECT_NE(make_page(folder, explained).find("</html>"), std::string::npos) << explained;
  }
}

TEST(ExpertMaps, TheBrowserDrawsThemAndHostileNamesStayText) {
  const std::string browser = testing::find_browser();
  if (browser.empty()) GTEST_SKIP() << "no chromium on the PATH (or set SPARSIGHT_BROWSER)";
  const testing::TemporaryFolder folder;
  Json explained = Json::parse(kExplained);
  const std::string attack = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>";
  explained["domains"][0] = explained["parts"][0] = attack;
  explained["part_experts"][1]["domain"] = explained["part_experts"][0]["pairs"][0]["pair"] = attack;
  explained["domain_expert"][attack] = Json::parse("[[1, 2], [3, 4]]");
  make_page(folder, explained.dump());
  const testing::BrowserPage page = testing::open_in_browser(browser, write_report(folder.path("run")));
  EXPECT_EQ(page.charts, 13);  // nine of the run (report_browser_test.cpp), two of domains, two of parts
  EXPECT_EQ(page.console, "");
  EXPECT_NE(page.dom.find("<title>run - Sparsight report</title>"), std::string::npos);
  EXPECT_EQ(count(page.dom, "<img src=\"x\""), 0);
}

}  // namespace
}  // namespace sparsight::expert_map_test
